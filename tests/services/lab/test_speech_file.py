from pathlib import Path

import av
import numpy as np
import pytest

from pipeline.audible import audible_runs
from pipeline.errors import BadAudioError
from services.lab import speech_file
from tests.speech import espeak, silence, write_wav


def tone(seconds: float, rate: int = 48_000, level: float = 0.3) -> np.ndarray:
    return (np.sin(2 * np.pi * 440 * np.arange(round(seconds * rate)) / rate) * level * 32767).astype(
        np.int16
    )


@pytest.mark.parametrize(("rate", "channels"), [(8_000, 1), (16_000, 2), (44_100, 1), (96_000, 2)])
def test_any_rate_and_channels_become_48_khz_mono(tmp_path: Path, rate: int, channels: int) -> None:
    path = write_wav(tmp_path / "speech.wav", tone(1.0, rate), rate, channels)
    file = speech_file.load(path)
    assert file.pcm.ndim == 1
    assert (file.voiced.end - file.voiced.start) / 48_000 == pytest.approx(1.0, abs=0.03)


def test_the_voiced_span_is_first_to_last_voiced_sample(tmp_path: Path) -> None:
    pcm = np.concatenate((silence(2.0), tone(0.5), silence(0.7), tone(0.5), silence(3.0)))
    file = speech_file.load(write_wav(tmp_path / "a.wav", pcm))
    assert file.voiced.start == pytest.approx(4800, abs=480)
    assert (file.voiced.end - file.voiced.start) / 48_000 == pytest.approx(1.7, abs=0.02)
    assert len(file.pcm) == pytest.approx(48_000 * 1.9, abs=1000)


def test_a_noisy_file_is_measured_above_its_own_floor(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    noise = (rng.standard_normal(48_000 * 4) * 250).astype(np.int16)  # about -42 dBFS
    noise[96_000:120_000] += tone(0.5)
    file = speech_file.load(write_wav(tmp_path / "noisy.wav", noise))
    assert (file.voiced.end - file.voiced.start) / 48_000 == pytest.approx(0.5, abs=0.03)


def test_the_soft_end_of_a_file_without_pauses_is_voiced(tmp_path: Path) -> None:
    fading = np.concatenate((tone(1.0), tone(0.3, level=0.02), silence(0.12)))
    file = speech_file.load(write_wav(tmp_path / "living.wav", fading))
    assert (file.voiced.end - file.voiced.start) / 48_000 == pytest.approx(1.3, abs=0.02)
    unbroken = np.concatenate((tone(1.0), tone(0.3, level=0.02)))
    file = speech_file.load(write_wav(tmp_path / "unbroken.wav", unbroken))
    assert (file.voiced.end - file.voiced.start) / 48_000 == pytest.approx(1.3, abs=0.02)


def test_an_audible_run_has_40_ms() -> None:
    assert audible_runs(np.concatenate((silence(0.1), tone(0.03), silence(0.1)))) == []
    assert len(audible_runs(np.concatenate((silence(0.1), tone(0.05), silence(0.1))))) == 1
    assert audible_runs(tone(0.5, level=0.002)) == [], "below -50 dBFS"


def test_flac_and_compressed_audio_are_read(tmp_path: Path) -> None:
    wav = write_wav(tmp_path / "speech.wav", espeak("Hello there, how are you?"))
    for name in ("speech.flac", "speech.mp3"):
        with av.open(str(wav)) as source, av.open(str(tmp_path / name), "w") as target:
            stream = target.add_stream({"flac": "flac", "mp3": "libmp3lame"}[name[7:]], rate=48_000)
            for frame in source.decode(audio=0):
                frame.pts = None
                target.mux(stream.encode(frame))
            target.mux(stream.encode(None))
        assert speech_file.load(tmp_path / name).voiced.end > 24_000


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "no such file"),
        (b"", "is empty"),
        (b"this is not audio" * 100, "is not audio"),
        ("folder", "is a folder"),
        ("picture", "has no audio in it"),
        ("silence", "no speech in it"),
        ("long", "longer than 5 minutes"),
    ],
)
def test_a_file_that_is_no_speech_is_named(tmp_path: Path, content: object, complaint: str) -> None:
    path = tmp_path / "question.wav"
    match content:
        case bytes():
            path.write_bytes(content)
        case "folder":
            path.mkdir()
        case "picture":
            with av.open(str(path), "w", format="mp4") as target:
                stream = target.add_stream("libx264", rate=25)
                stream.width = stream.height = 32
                target.mux(stream.encode(av.VideoFrame(32, 32, "yuv420p")))
                target.mux(stream.encode(None))
        case "silence":
            write_wav(path, silence(3600, 8_000), 8_000)
        case "long":
            write_wav(path, np.tile(tone(1.0, 8_000), 400), 8_000)
    with pytest.raises(BadAudioError, match=complaint) as raised:
        speech_file.load(path)
    assert "question.wav" in str(raised.value)
