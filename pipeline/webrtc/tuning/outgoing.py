"""Tells of every RTP packet that leaves, right after it was handed to the socket."""

import struct
from collections.abc import Callable

from aiortc import RTCRtpSender

from pipeline.webrtc.tuning.internals import SEND_RTP, SSRC, read, replace

_RTP = struct.Struct("!xxxxII")
"""The fixed part of RFC 3550's header from the third byte on: time stamp, SSRC."""


class _Outgoing:
    """In the place of a transport's `_send_rtp`; audio and video share a bundled transport."""

    def __init__(self, send: object) -> None:
        assert callable(send)
        self._send = send
        self.listeners: dict[int, Callable[[int], None]] = {}

    async def __call__(self, data: bytes) -> None:
        await self._send(data)
        if len(data) < _RTP.size:
            return  # RTCP's BYE
        timestamp, ssrc = _RTP.unpack_from(data)
        listener = self.listeners.get(ssrc)
        if listener is not None:  # else RTCP, or a retransmission, which has an SSRC of its own
            listener(timestamp)


def tell_sent(sender: RTCRtpSender, listener: Callable[[int], None]) -> None:
    """Have `listener` told the RTP time stamp of every packet that `sender` sends for the first time.

    Raises IncompatibleLibraryError.
    """
    transport = sender.transport
    outgoing = read(transport, SEND_RTP)
    if not isinstance(outgoing, _Outgoing):
        outgoing = _Outgoing(outgoing)
        replace(transport, SEND_RTP, outgoing)
    ssrc = read(sender, SSRC)
    assert isinstance(ssrc, int)
    outgoing.listeners[ssrc] = listener
