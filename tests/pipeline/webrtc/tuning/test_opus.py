import numpy as np
import pytest

from pipeline.events import WIRE_RATE, Pcm
from pipeline.webrtc.tuning.opus import MAX_CONCEALED, MAX_FILL, OpusStream
from pipeline.webrtc.tuning.receive_buffer import Arrived, Released
from tests.pipeline.webrtc.tuning.sounding import FRAME, loudness, opus_packets

PACKETS = opus_packets(60)


def released(
    index: int, *, lost: int = 0, shift: int = 0, payload: bytes | None = None, restarted: bool = False
) -> Released:
    """Packet `index`, its time stamp shifted by `shift` samples, arriving when it should."""
    stamp = (index * FRAME + shift) & 0xFFFFFFFF
    body = PACKETS[index % len(PACKETS)] if payload is None else payload
    arrived = Arrived(1, index & 0xFFFF, stamp, body, (index * FRAME + shift) / WIRE_RATE)
    return Released(arrived, lost, restarted)


@pytest.fixture
def stream() -> OpusStream:
    stream = OpusStream()
    for index in range(20):
        assert len(stream.decode(released(index))) == FRAME
    return stream


def total(stream: OpusStream, *pieces: Released) -> Pcm:
    return np.concatenate([stream.decode(piece) for piece in pieces])


def test_sound_is_mono_and_as_loud_as_it_was(stream: OpusStream) -> None:
    assert loudness(stream.decode(released(20))) == pytest.approx(8000 / 2**0.5, rel=0.1)


def test_a_lost_packet_is_concealed_in_its_own_length(stream: OpusStream) -> None:
    pcm = stream.decode(released(21, lost=1))
    assert len(pcm) == 2 * FRAME
    assert loudness(pcm[:FRAME]) > 3000, "a hole would be a click"


def test_a_burst_keeps_the_time_line_and_fades(stream: OpusStream) -> None:
    pcm = stream.decode(released(40, lost=20))
    assert len(pcm) == 21 * FRAME
    concealed = round(MAX_CONCEALED * WIRE_RATE)
    assert loudness(pcm[concealed : 20 * FRAME]) == 0
    assert loudness(pcm[:FRAME]) > loudness(pcm[concealed - FRAME : concealed]) > 0


def test_a_sender_that_was_silent_is_silence(stream: OpusStream) -> None:
    pcm = stream.decode(released(20, shift=19 * FRAME))
    assert len(pcm) == 20 * FRAME
    assert loudness(pcm[: 19 * FRAME]) == 0


def test_a_loss_within_silence_conceals_only_what_was_sent(stream: OpusStream) -> None:
    pcm = stream.decode(released(21, lost=1, shift=9 * FRAME))
    assert len(pcm) == 11 * FRAME
    assert loudness(pcm[:FRAME]) > 3000
    assert loudness(pcm[FRAME : 10 * FRAME]) == 0


@pytest.mark.parametrize("shift", [2 * WIRE_RATE, 600 * WIRE_RATE, 2**31 - 1, -FRAME, -600 * WIRE_RATE])
def test_a_microphone_muted_for_minutes_or_a_clock_set_back_fills_nothing(
    stream: OpusStream, shift: int
) -> None:
    assert len(stream.decode(released(20, shift=shift))) == FRAME
    assert len(stream.decode(released(21, shift=shift))) == FRAME, "the time line starts anew there"
    assert stream.filled == 0


def test_time_stamps_wrap_around() -> None:
    stream = OpusStream()
    shift = 2**32 - 2 * FRAME
    pcm = total(stream, released(0, shift=shift), released(1, shift=shift), released(3, lost=1, shift=shift))
    assert len(pcm) == 4 * FRAME


def test_a_restart_has_no_gap_before_it(stream: OpusStream) -> None:
    assert len(stream.decode(released(30, restarted=True))) == FRAME


def test_running_time_stamps_cannot_make_more_silence_than_time_passed(stream: OpusStream) -> None:
    jump = round(0.9 * WIRE_RATE)
    for index in range(20, 70):
        arrived = Arrived(1, index, index * (FRAME + jump), PACKETS[0], index * 0.02)
        stream.decode(Released(arrived))
    assert stream.filled <= (MAX_FILL + 50 * 0.02) * WIRE_RATE


def test_what_is_not_opus_is_counted_and_its_time_filled(stream: OpusStream) -> None:
    assert len(stream.decode(released(20, payload=b"\xff\xff\xff"))) == 0
    assert stream.undecodable == 1
    assert len(stream.decode(released(21))) == 2 * FRAME


def test_an_empty_packet_is_no_sound(stream: OpusStream) -> None:
    assert len(stream.decode(released(20, payload=b""))) == 0
    assert len(stream.decode(released(20))) == FRAME
