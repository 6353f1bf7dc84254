"""Our encoders: what bit rate they have, and where RTP time stamps begin."""

import asyncio
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from aiortc import MediaStreamTrack, RTCRtpCodecParameters, RTCRtpSender
from aiortc.rtp import RTCP_PSFB_APP, RtcpPsfbPacket, RtpPacket, pack_remb_fci
from av import VideoCodecContext, VideoFrame
from av.frame import Frame

from pipeline.webrtc.tuning.encoders import (
    Bitrate,
    DrawnVp8Encoder,
    PromptSound,
    TimedEncoder,
    VideoEncoder,
    tune_sender,
)
from tests.pipeline.webrtc.tuning.calls import StepMicrophone, calling
from tests.pipeline.webrtc.tuning.sounding import FRAME, frame, voice

OPUS = RTCRtpCodecParameters(mimeType="audio/opus", clockRate=48_000, channels=2, payloadType=96)
VP8 = RTCRtpCodecParameters(mimeType="video/VP8", clockRate=90_000, payloadType=97)
H264 = RTCRtpCodecParameters(
    mimeType="video/H264",
    clockRate=90_000,
    payloadType=99,
    parameters={"packetization-mode": "1", "profile-level-id": "42e01f"},
)
RATE = Bitrate(start=800_000, min=400_000, max=1_200_000)


def transceiver(codec: RTCRtpCodecParameters) -> Any:
    kind = codec.mimeType.split("/")[0]
    return SimpleNamespace(sender=RTCRtpSender(kind, SimpleNamespace(state="new")), _codecs=[codec])


def picture(index: int, side: int = 128) -> VideoFrame:
    noise = np.random.default_rng(index).integers(0, 256, (side, side, 3), dtype=np.uint8)
    made = VideoFrame.from_ndarray(noise, format="bgr24").reformat(format="yuv420p")
    made.pts, made.time_base = index * 3600, Fraction(1, 90_000)
    return made


async def estimated(sender: RTCRtpSender, bitrate: int) -> None:
    """The client's estimate of the path, as aiortc gets it."""
    fci = pack_remb_fci(bitrate, [sender._ssrc])
    await sender._handle_rtcp_packet(RtcpPsfbPacket(fmt=RTCP_PSFB_APP, ssrc=1, media_ssrc=0, fci=fci))


@pytest.mark.parametrize("codec", [VP8, H264])
async def test_an_estimate_moves_the_bit_rate_within_our_limits(codec: RTCRtpCodecParameters) -> None:
    tuned = transceiver(codec)
    encoder = tune_sender(tuned, RATE)
    assert isinstance(encoder, VideoEncoder)
    assert encoder.target_bitrate == 800_000
    for estimate, expected in ((600_000, 600_000), (100_000, 400_000), (9_000_000, 1_200_000)):
        await estimated(tuned.sender, estimate)
        assert encoder.target_bitrate == pytest.approx(expected, rel=0.01)


async def test_a_climbing_estimate_makes_few_key_frames() -> None:
    tuned = transceiver(VP8)
    encoder = tune_sender(tuned, Bitrate(start=300_000, min=300_000, max=1_000_000))
    assert isinstance(encoder, VideoEncoder)
    rates = []
    for step in range(100):
        await estimated(tuned.sender, round(300_000 * 1.02**step))
        rates.append(encoder.target_bitrate)
    assert len(set(rates)) <= 4
    assert rates[-1] == 1_000_000


@pytest.mark.parametrize("codec", [VP8, H264])
async def test_the_bit_rate_is_what_is_sent(codec: RTCRtpCodecParameters) -> None:
    sizes = []
    for rate in (400_000, 3_200_000):
        encoder = tune_sender(transceiver(codec), Bitrate(rate, rate, rate))
        assert encoder is not None
        sent = [encoder.encode(picture(index))[0] for index in range(40)]
        sizes.append(sum(len(payload) for payloads in sent[10:] for payload in payloads))
    assert sizes[1] > 2 * sizes[0]


class Noting(DrawnVp8Encoder):
    """Notes the codecs it makes; one of aiortc's own would not be among them."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[VideoCodecContext] = []

    def _new(self, width: int, height: int) -> VideoCodecContext:
        self.made.append(super()._new(width, height))
        return self.made[-1]


def test_a_codec_for_drawn_pictures_is_made_anew_only_for_another_size_or_rate() -> None:
    encoder = Noting()
    for index, (rate, side, codecs) in enumerate(
        [(500_000, 128, 1), (540_000, 128, 1), (600_000, 128, 2), (600_000, 64, 3)]
    ):
        encoder.target_bitrate = rate
        assert encoder.encode(picture(index, side))[0]
        assert len(encoder.made) == codecs
        assert encoder.codec is encoder.made[-1]


async def test_other_senders_keep_what_aiortc_gives_them() -> None:
    tune_sender(transceiver(VP8), RATE)
    untouched = transceiver(VP8).sender
    await estimated(untouched, 9_000_000)
    assert untouched._RTCRtpSender__encoder is None


async def test_an_encoder_in_use_is_left_alone() -> None:
    tuned = transceiver(VP8)
    assert tune_sender(tuned, RATE) is not None
    assert tune_sender(tuned, RATE) is None


async def test_the_origin_is_known_once_a_frame_was_sent() -> None:
    tuned = transceiver(OPUS)
    encoder = tune_sender(tuned, RATE)
    assert isinstance(encoder, TimedEncoder)
    assert encoder.encode(frame(voice(0), 500))[1] == 0, "aiortc counts from the first frame"
    assert encoder.origin is None
    tuned.sender._RTCRtpSender__rtp_timestamp = 1000
    encoder.encode(frame(voice(1), 501))
    assert encoder.origin == (1000 - 500 * FRAME) % 2**32


async def test_sound_behind_a_skip_is_stamped_with_its_own_time() -> None:
    encoder = tune_sender(transceiver(OPUS), RATE)
    assert encoder is not None
    stamps = [encoder.encode(frame(voice(k), k))[1] for k in (500, 501, 502, 512, 513)]
    assert stamps == [k * FRAME for k in (0, 1, 2, 12, 13)]


async def test_sound_is_encoded_where_it_comes_without_a_thread() -> None:
    """aiortc calls `pack`, on the loop, for what is no frame."""

    class Two(MediaStreamTrack):
        kind = "audio"

        def __init__(self) -> None:
            super().__init__()
            self.left = [0, 1]

        async def recv(self) -> Frame:
            index = self.left.pop(0)
            made: Frame = frame(voice(index), index)
            return made

    encoder = tune_sender(transceiver(OPUS), RATE)
    assert encoder is not None
    own = Two()
    prompt = PromptSound(own)
    for stamp in (0, FRAME):
        sound = await prompt.recv()
        assert not isinstance(sound, Frame)
        payloads, timestamp = encoder.pack(sound)
        assert (len(payloads), timestamp) == (1, stamp)
    prompt.stop()
    assert own.readyState == "ended"


class Steps(MediaStreamTrack):
    """Frames as fast as they are taken, whose numbers begin somewhere and once jump."""

    def __init__(self, kind: str, first: int) -> None:
        super().__init__()
        self.kind = kind
        self.pts: list[int] = []
        self._index = first

    async def recv(self) -> Frame:
        await asyncio.sleep(0.002)
        self._index += 1 if len(self.pts) != 20 else 11
        made: Frame = frame(voice(self._index), self._index) if self.kind == "audio" else picture(self._index)
        assert made.pts is not None
        self.pts.append(made.pts)
        return made


@pytest.mark.loopback
@pytest.mark.parametrize("codec", ["VP8", "H264"])
async def test_a_peer_knows_the_rtp_time_stamps_its_frames_leave_with(codec: str) -> None:
    voices, faces = Steps("audio", 700), Steps("video", 90)
    async with calling(StepMicrophone(), voices, faces, video_codec=codec) as (caller, peer, _):
        stamps = {kind: await _stamps(caller, kind, 40) for kind in ("audio", "video")}
        for track in (voices, faces):
            origin = peer.rtp_origin(track.kind)
            assert origin is not None
            found = [(stamp - origin) % 2**32 for stamp in stamps[track.kind]]
            assert set(found) - set(track.pts) == set()
        assert codec in {c.name for c in peer._connection.getTransceivers()[1]._codecs[:1]}


async def _stamps(caller: Any, kind: str, count: int) -> list[int]:
    """RTP time stamps that arrive at the caller's receiver."""
    receiver = next(t.receiver for t in caller.getTransceivers() if t.kind == kind)
    handle, stamps, enough = receiver._handle_rtp_packet, set[int](), asyncio.Event()

    async def noted(packet: RtpPacket, arrival_time_ms: int) -> None:
        stamps.add(packet.timestamp)
        if len(stamps) >= count:
            enough.set()
        await handle(packet, arrival_time_ms=arrival_time_ms)

    receiver._handle_rtp_packet = noted
    async with asyncio.timeout(30):
        await enough.wait()
    return sorted(stamps)
