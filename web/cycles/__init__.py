"""Cycles' runtime routes, wire-compatible: its clients spend from a wallet of ours unchanged."""
