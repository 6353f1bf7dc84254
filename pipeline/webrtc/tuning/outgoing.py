"""Tells of every RTP packet that leaves, right after it was handed to the socket."""

import struct
from collections.abc import Callable

from aiortc import RTCRtpSender

from pipeline.webrtc.tuning.internals import SEND_RTP, SSRC, read, replace

_RTP = struct.Struct("!xxHII")
"""The fixed part of RFC 3550's header from the third byte on: sequence number, time stamp, SSRC."""


class _Outgoing:
    """In the place of a transport's `_send_rtp`; audio and video share a bundled transport."""

    def __init__(self, send: object) -> None:
        assert callable(send)
        self._send = send
        self.listeners: dict[int, Callable[[int], None]] = {}
        self._newest: dict[int, int] = {}
        """SSRC → sequence number."""

    async def __call__(self, data: bytes) -> None:
        await self._send(data)
        if len(data) < _RTP.size:
            return  # RTCP's BYE
        number, timestamp, ssrc = _RTP.unpack_from(data)
        listener = self.listeners.get(ssrc)
        if listener is None:
            return  # RTCP, or a retransmission to a client that gives those an SSRC of their own (RFC 4588)
        newest = self._newest.get(ssrc)
        if newest is None or 0 < (number - newest) % 2**16 < 2**15:
            self._newest[ssrc] = number
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
