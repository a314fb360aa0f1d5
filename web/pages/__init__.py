"""The operators' pages: for whoever signed in with a key that may look, and, with one of an admin, act."""
