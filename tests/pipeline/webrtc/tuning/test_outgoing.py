"""Who is told of what leaves."""

from types import SimpleNamespace
from typing import Any

from aiortc.rtp import RtcpByePacket, RtpPacket

from pipeline.webrtc.tuning.outgoing import tell_sent

SSRC = 1234


def packet(number: int, stamp: int, ssrc: int = SSRC) -> bytes:
    made = RtpPacket(payload_type=96, sequence_number=number % 2**16, timestamp=stamp)
    made.ssrc, made.payload = ssrc, b"sound"
    return made.serialize()


class Transport:
    def __init__(self) -> None:
        self.sent: list[bytes] = []

    async def _send_rtp(self, data: bytes) -> None:
        self.sent.append(data)


def sender(transport: Transport, ssrc: int = SSRC) -> Any:
    return SimpleNamespace(transport=transport, _ssrc=ssrc)


async def test_each_packet_is_told_once_however_often_it_is_sent() -> None:
    transport, told = Transport(), list[int]()
    tell_sent(sender(transport), told.append)
    # 65,535 is followed by 0; number 0 is sent again, because it was lost.
    for number, stamp in ((65_534, 1), (65_535, 2), (65_536, 3), (65_537, 4), (65_536, 3), (65_538, 5)):
        await transport._send_rtp(packet(number, stamp))
    assert told == [1, 2, 3, 4, 5]
    assert len(transport.sent) == 6


async def test_senders_of_one_transport_are_told_of_their_own() -> None:
    transport, voice, face = Transport(), list[int](), list[int]()
    tell_sent(sender(transport), voice.append)
    tell_sent(sender(transport, SSRC + 1), face.append)
    await transport._send_rtp(packet(7, 1))
    await transport._send_rtp(packet(7, 2, SSRC + 1))
    await transport._send_rtp(packet(7, 3, SSRC + 2))
    await transport._send_rtp(bytes(RtcpByePacket(sources=[SSRC])))
    assert (voice, face) == ([1], [2])
