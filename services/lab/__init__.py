"""The lab: synthetic users who speak and listen over real WebRTC, and what is made of their calls."""
