"""A call on tape: all that a conversation depended on, so that it can be held again in virtual time.

`taped_peer` hears what crosses the wire, `recorder` what the stages were asked and answered, `writer`
keeps it. A tape never holds a call up, and a fault of its own only ends the tape.
"""
