"""Hearing: microphone audio → the user's utterances → text."""
