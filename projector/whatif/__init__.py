"""A day as it was beside the day as it would have been. Reads a record and changes nothing."""
