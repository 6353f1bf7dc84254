"""Processes and commands: what an operator starts."""
