"""A record in a file: what was decided as a table, or the raw messages. Nothing here decides or runs a wallet."""
