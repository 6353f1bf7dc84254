"""The drawn character: what it looks like, layer by layer."""
