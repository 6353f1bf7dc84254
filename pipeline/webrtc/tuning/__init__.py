"""aiortc, tuned: everything in this project that reaches behind its public interface, and aioice's.

Written for aiortc 1.16 and aioice 0.13, and refusing any other (`internals`). What it changes, for our own
peers only:

- `uplink`: the microphone is heard as its packets arrive, through a buffer that never waits long
  (`receive_buffer`), decoded and concealed on the loop (`opus`). aiortc's own holds sound for 80 ms, and
  for 280 ms from the first lost packet on (its issue 543); its queues have no bound.
- `encoders`: the picture's bit rate is ours to set, and the origin of outgoing RTP time stamps is known.
- `outgoing`: whoever wants to is told when a packet has left.
- `negotiation`: which codecs an answer names.
- `loopback`: a machine without a network can still call itself.
- `closing`: a call that ends while it connects leaves neither task nor thread.
"""
