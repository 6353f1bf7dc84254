"""One conversation: everything between a microphone and an ear. No HTTP server, no processes."""
