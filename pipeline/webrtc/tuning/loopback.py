"""Loopback candidates: aioice offers none, so without a network interface a local call cannot connect.

Written against aioice 0.13, whose `aioice.ice.get_host_addresses` lists a host's addresses without
127.0.0.1; it is the only seam. `offer_loopback` is called once, by whoever starts a process.
"""

from typing import Protocol

import aioice.ice

LOOPBACK = "127.0.0.1"


class _Gather(Protocol):
    def __call__(self, use_ipv4: bool, use_ipv6: bool) -> list[str]: ...


class _WithLoopback:
    def __init__(self, gather: _Gather) -> None:
        self._gather = gather

    def __call__(self, use_ipv4: bool, use_ipv6: bool) -> list[str]:
        return self._gather(use_ipv4, use_ipv6) or ([LOOPBACK] if use_ipv4 else [])


def offer_loopback() -> None:
    """Let every connection of this process offer 127.0.0.1 when the machine has no other address.

    With a network, a local caller reaches the server at that network's address, and offering
    127.0.0.1 to others would only cost them failing checks. Calling it again changes nothing.
    """
    gather: _Gather = aioice.ice.get_host_addresses
    if not isinstance(gather, _WithLoopback):
        setattr(aioice.ice, "get_host_addresses", _WithLoopback(gather))  # noqa: B010 (mypy)
