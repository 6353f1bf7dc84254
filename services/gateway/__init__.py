"""The front door: the page, the signalling, and the sessions it opens."""
