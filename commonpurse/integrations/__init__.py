"""Where frameworks let others look at their model calls: each module holds and settles through one of our clients.

No module here is imported by any other of ours, and each imports its framework, which its own extra names.
"""
