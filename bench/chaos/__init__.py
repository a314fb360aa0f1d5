"""A whole wallet whose parts are killed at random while it is used; then its books are compared with its callers'."""
