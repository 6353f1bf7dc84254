"""Networks that lose and delay packets, between a user and a server, on a machine that has no netem."""
