from pathlib import Path

import av
import numpy as np
import pytest

from pipeline.clock import VirtualClock
from services.lab import recording
from services.lab.arrivals import Heard, PictureTap
from services.lab.recording import Cue
from services.lab.synthetic_user import Told


def packet(at: float, index: int, level: int = 1000, origin: int = 2**32 - 3000) -> Heard:
    return Heard(at, (origin + index * 960) % 2**32, np.full(960, level + index, np.int16))


def test_sound_lies_where_its_time_stamps_say() -> None:
    late = [0.0, 0.003, 0.0, 0.012, 0.0]  # jitter of the way here
    heard = [packet(100.0 + i * 0.02 + late[i], i) for i in range(5)]
    pcm = recording.sound(heard, 99.9, 100.2)
    assert len(pcm) == 14_400
    assert (pcm[:4800] == 0).all()
    for i in range(5):
        assert (pcm[4800 + i * 960 : 4800 + (i + 1) * 960] == 1000 + i).all()


def test_a_lost_packet_is_silence_and_moves_nothing() -> None:
    heard = [packet(100.0 + i * 0.02, i) for i in (0, 1, 3)]
    pcm = recording.sound(heard, 100.0, 100.1)
    assert (pcm[1920:2880] == 0).all()
    assert (pcm[2880:3840] == 1003).all()


def test_no_sound_at_all_is_silence() -> None:
    assert (recording.sound([], 0.0, 1.0) == 0).all()


def told(at: float, segment: int, text: str, status: str = "in-progress") -> Told:
    return Told(at, "bot-output", {"segment_id": segment, "text": text, "spoken_status": status})


def test_captions_follow_what_is_spoken() -> None:
    messages = [
        told(10.0, 0, "Well,", "new"),
        told(11.0, 0, "Well,"),
        told(11.5, 1, "here I am."),
        told(12.0, 1, "here I am."),
        Told(12.5, "bot-stopped-speaking", {}),
        told(20.0, 0, "Yes."),
        Told(20.4, "bot-stopped-speaking", {}),
    ]
    assert recording.captions(messages, 10.0) == [
        Cue(1.0, 1.5, "Well,"),
        Cue(1.5, 2.5, "here I am."),
        Cue(10.0, pytest.approx(10.4), "Yes."),
    ]


def test_webvtt(tmp_path: Path) -> None:
    recording.write_vtt(tmp_path / "c.vtt", [Cue(1.0, 3661.5, "Hello.")])
    assert (tmp_path / "c.vtt").read_text() == "WEBVTT\n\n00:00:01.000 --> 01:01:01.500\nHello.\n"


def test_a_video_has_its_pictures_at_their_times(tmp_path: Path) -> None:
    tap = PictureTap(VirtualClock(), keep=True)
    encoder = av.CodecContext.create("libvpx", "w")
    encoder.width = encoder.height = 64
    encoder.pix_fmt = "yuv420p"
    encoder.options = {"deadline": "realtime", "lag-in-frames": "0"}
    for index in range(30):
        frame = av.VideoFrame.from_ndarray(np.full((64, 64, 3), index * 8, np.uint8), format="bgr24")
        for encoded in encoder.encode(frame):
            tap.kept.append((index * 3600, bytes(encoded)))
            tap.seen.append((50.0 + index * 0.04, index * 3600))
    recording.write_mp4(tmp_path / "r.mp4", np.zeros(48_000, np.int16), tap, 49.5)
    with av.open(str(tmp_path / "r.mp4")) as container:
        times = [frame.time for frame in container.decode(video=0)]
    assert len(times) == 30
    assert times[0] == pytest.approx(0.5, abs=0.002)
    assert np.diff(times) == pytest.approx([0.04] * 29, abs=0.002)


def test_no_video_is_no_failure(tmp_path: Path) -> None:
    recording.write_mp4(tmp_path / "r.mp4", np.zeros(48_000, np.int16), PictureTap(VirtualClock(), True), 0.0)
    assert (tmp_path / "r.mp4").exists()
