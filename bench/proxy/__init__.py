"""What a proxy adds to a call: the direct upstream, Common Purse and LiteLLM's proxy in one run."""
