"""The wire: one WebRTC peer, the tracks it sends, and the messages on its data channel."""
