"""What an operator's own instruments are told: numbers, traces and the state of this machine.

Conversations do not wait for any of it, and nothing of it can end one. What people say is not in it, unless
the operator switches that on.
"""
