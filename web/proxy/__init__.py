"""Guards real clients unchanged: the providers' own addresses, with a hold before every call."""
