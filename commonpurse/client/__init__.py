"""The wallet's HTTP API as a program asks it: connections, asks, answers, and what is tried on.

No HTTP library is loaded: programs bring their own, and must not be forced to another.
"""
