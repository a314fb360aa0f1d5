"""Readers of the account's own figure at a provider. They run beside the projector and never on the way of a call."""
