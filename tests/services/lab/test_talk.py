"""`visavis talk` against the whole stack: real models, real WebRTC, judged from its files alone."""

import json
import logging
import os
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from faster_whisper import WhisperModel

from pipeline.asr.whisper import packaged_model
from pipeline.events import Pcm, Phoneme
from tests.pipeline.render import lip_sync
from tests.pipeline.render.mouth_reader import openness
from tests.serving import VISAVIS, serving
from tests.speech import spoken, steady_speech, write_wav
from tests.transcripts import word_error_rate

pytestmark = [pytest.mark.models, pytest.mark.slow]

_log = logging.getLogger(__name__)

QUESTIONS = (
    "Can you tell me a short story about a dog?",
    "What is the difference between a lake and a river?",
    "Tell me something interesting about the ocean.",
    "Why is the sky blue?",
    "What should I cook for dinner tonight?",
    "How is a rainbow formed?",
    "Give me one tip for sleeping better at night.",
    "What are good reasons to learn a new language?",
    "Tell me about the city of Paris.",
    "How do airplanes stay in the air?",
    "What do bees do all day?",
    "Why do people like music?",
    "What is the moon made of?",
    "How does a bicycle work?",
    "Tell me about the winter.",
    "What is a good way to learn to swim?",
    "Why do cats sleep so much?",
    "What is a good book for a long train journey, and why would you choose it?",
)


@dataclass(frozen=True)
class Conversation:
    """What one `talk` left behind."""

    folder: Path
    records: list[dict[str, Any]]


@pytest.fixture(scope="module")
def conversation(tmp_path_factory: pytest.TempPathFactory) -> Conversation:
    folder = tmp_path_factory.mktemp("talk")
    files = [write_wav(folder / f"q{i:02d}.wav", spoken(text)) for i, text in enumerate(QUESTIONS)]
    # A voice without randomness says the same again when the test asks it to, sample by sample.
    steady = {
        "tts.noise_scale": 0,
        "tts.noise_w_scale": 0,
        "llm.sampling.seed": 3,
        "llm.sampling.max_output_tokens": 48,
    }
    with serving(steady) as served:
        talk = subprocess.run(
            [VISAVIS, "talk", *files, "--url", served.url, "--out", folder / "out", "--video"],
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
    assert talk.returncode == 0, talk.stderr[-3000:]
    return Conversation(folder / "out", json.loads((folder / "out" / "turns.json").read_text()))


def test_every_question_is_understood_and_answered(conversation: Conversation) -> None:
    answered = [record for record in conversation.records if not record["premature"]]
    assert len(answered) == len(QUESTIONS)
    pairs = [(q, record["user_text"]) for q, record in zip(QUESTIONS, answered, strict=True)]
    assert word_error_rate(pairs) <= 0.15, pairs
    for record in answered:
        assert record["failed"] is None
        assert record["reply_text"]
        assert record["time_to_first_audio_ms"] > 100
        assert record["time_to_first_sound_ms"] == record["time_to_first_audio_ms"]
        assert word_error_rate([(record["reply_text"], record["heard_text"])]) <= 0.1
        assert record["handoff_gap_ms"] is None, "what is not known is null"


def test_what_is_heard_is_the_reply(conversation: Conversation) -> None:
    """Whisper on reply.wav gives back reply_text: word error rate at most 15 %."""
    long_enough = [r for r in conversation.records if len(r["reply_text"].split()) >= 8]
    assert len(long_enough) >= 15
    whisper = WhisperModel(str(packaged_model()), device="cpu", compute_type="int8", cpu_threads=2)
    segments, _ = whisper.transcribe(
        str(conversation.folder / "reply.wav"),
        language="en",
        beam_size=5,
        condition_on_previous_text=False,
        vad_filter=True,
    )
    heard = " ".join(segment.text for segment in segments)
    said = " ".join(record["reply_text"] for record in conversation.records)
    assert word_error_rate([(said, heard)]) <= 0.15, (said, heard)


def test_captions_are_in_step_with_the_sound(conversation: Conversation) -> None:
    cues = _cues(conversation.folder / "captions.vtt")
    said = " ".join(text for _, _, text in cues)
    replies = " ".join(record["reply_text"] for record in conversation.records)
    assert word_error_rate([(replies, said)]) <= 0.1
    assert all(start < end for start, end, _ in cues)
    offsets = [found - start for _, start, found in _aligned(conversation)]
    assert abs(float(np.median(offsets))) < 0.1, "a caption shows when its clause is heard"


def test_the_mouth_is_truthful(conversation: Conversation) -> None:
    """In the decoded video: closed at p, b, m, open at open vowels, at rest when silent."""
    clauses = _aligned(conversation)
    phonemes = [phoneme for clause, _, found in clauses for phoneme in _moved(clause, found)]
    seen = _watched(conversation.folder / "reply.mp4")
    verdict = lip_sync.judge(seen, phonemes)
    assert verdict.bilabials >= 20
    assert verdict.vowels >= 40
    assert verdict.closed >= 0.9
    assert verdict.opened >= 0.9
    assert verdict.resting >= 0.9

    rng = np.random.default_rng(1)
    shuffled = [
        replace(phoneme, symbol=str(symbol))
        for phoneme, symbol in zip(phonemes, rng.permutation([p.symbol for p in phonemes]), strict=True)
    ]
    false = lip_sync.judge(seen, shuffled)
    assert false.closed < 0.9
    assert false.opened < 0.9


def test_the_mouth_does_not_drift(conversation: Conversation) -> None:
    """Lip-sync drift: how far the mouth in the decoded picture is behind the phonemes that are heard."""
    clauses = _aligned(conversation)
    phonemes = [phoneme for clause, _, found in clauses for phoneme in _moved(clause, found)]
    seen = _watched(conversation.folder / "reply.mp4")
    half = len(phonemes) // 2
    lags = [lip_sync.lag(seen, part) for part in (phonemes[:half], phonemes[half:])]
    _log.info("the mouth is behind by %.0f ms at first, by %.0f ms later", *(1000 * lag for lag in lags))
    assert max(map(abs, lags)) <= 0.06
    assert abs(lags[1] - lags[0]) <= 0.03

    late = [lip_sync.Seen(frame.position + 0.1, frame.openness) for frame in seen]
    assert lip_sync.lag(late, phonemes) - lip_sync.lag(seen, phonemes) == pytest.approx(0.1, abs=0.021)


@pytest.mark.proof
def test_two_ways_to_the_time_to_first_audio_agree(conversation: Conversation) -> None:
    """By the waveform that came, and by the server's ledger of what this caller said it played when."""
    answered = [record for record in conversation.records if not record["premature"]]
    apart = [record["ledger_first_audio_ms"] - record["time_to_first_audio_ms"] for record in answered]
    median, p95 = float(np.median(apart)), float(np.percentile(np.abs(apart), 95))
    bounds = [record["clock_bound_ms"] for record in answered]
    figures = "ledger less waveform: median %.1f ms, p95 of the amount %.1f ms, n %d; clocks tied to %.2f ms"
    _log.info(figures, median, p95, len(apart), max(bounds))
    assert abs(median) <= 15
    assert p95 <= 30
    assert all(record["stages_violated"] == [] for record in answered)


# ── where the clauses lie in the recording ─────────────────────────────────────────────────────


def _cues(path: Path) -> list[tuple[float, float, str]]:
    cues: list[tuple[float, float, str]] = []
    for block in path.read_text("utf-8").split("\n\n")[1:]:
        if "-->" in block:
            times, text = block.strip().split("\n", 1)
            start, end = (_seconds(stamp) for stamp in times.split(" --> "))
            cues.append((start, end, text))
    return cues


def _seconds(stamp: str) -> float:
    hours, minutes, seconds = stamp.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def _aligned(conversation: Conversation) -> list[tuple[Any, float, float]]:
    """Each clause said anew, when its caption says it began, and when it is really heard."""
    recording = _sound(conversation.folder / "reply.wav")
    found: list[tuple[Any, float, float]] = []
    for start, _, text in _cues(conversation.folder / "captions.vtt"):
        chunk = steady_speech(text)
        begin = max(0, round((start - 0.4) * 48_000))
        window = recording[begin : begin + len(chunk.pcm) + 40_000].astype(np.float64)
        if len(window) <= len(chunk.pcm):
            continue
        size = 1 << (len(window) + len(chunk.pcm)).bit_length()
        spectrum = np.fft.rfft(window, size) * np.conj(np.fft.rfft(chunk.pcm.astype(np.float64), size))
        match = np.fft.irfft(spectrum, size)[: len(window) - len(chunk.pcm)]
        at = int(np.argmax(match))
        piece = window[at : at + len(chunk.pcm)]
        likeness = match[at] / (np.linalg.norm(piece) * np.linalg.norm(chunk.pcm.astype(np.float64)) + 1e-9)
        if likeness > 0.7:
            found.append((chunk, start, (begin + at) / 48_000))
    assert len(found) >= 30, "most clauses are found again in the recording"
    return found


def _sound(path: Path) -> Pcm:
    with av.open(str(path)) as container:
        return np.concatenate([frame.to_ndarray()[0] for frame in container.decode(audio=0)])


def _moved(chunk: Any, by: float) -> list[Phoneme]:
    return [Phoneme(p.symbol, p.start + by, p.end + by) for p in chunk.phonemes]


def _watched(path: Path) -> list[lip_sync.Seen]:
    with av.open(str(path)) as container:
        return [
            lip_sync.Seen(float(frame.time), openness(frame.to_ndarray(format="bgr24")))
            for frame in container.decode(video=0)
        ]


# ── bad input, and no network ──────────────────────────────────────────────────────────────────


def _talk(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [VISAVIS, "talk", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env=os.environ | environment,
    )


def test_a_bad_file_is_named_before_anything_is_started(tmp_path: Path) -> None:
    (tmp_path / "empty.wav").touch()
    result = _talk(tmp_path / "empty.wav", "--out", tmp_path / "out")
    assert result.returncode == 2
    assert result.stderr.strip().endswith("empty.wav: is empty")
    assert not (tmp_path / "out").exists()


def test_no_server_at_the_url_is_said(tmp_path: Path) -> None:
    question = write_wav(tmp_path / "q.wav", spoken("What time is it?"))
    result = _talk(question, "--url", "http://127.0.0.1:9", "--out", tmp_path / "out")
    assert result.returncode == 1
    assert "no server answers at http://127.0.0.1:9" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None, reason="a network of its own needs root and iproute2"
)
def test_it_works_with_no_network_at_all(tmp_path: Path) -> None:
    question = write_wav(tmp_path / "q.wav", spoken("What is the capital of France?"))
    command = f"ip link set lo up && exec {VISAVIS} talk {question} --out {tmp_path / 'out'}"
    result = subprocess.run(
        ["unshare", "-n", "sh", "-c", command], capture_output=True, text=True, timeout=240, check=False
    )
    assert result.returncode == 0, result.stderr[-3000:]
    (record,) = json.loads((tmp_path / "out" / "turns.json").read_text())
    assert "capital" in record["user_text"].lower()
    assert record["time_to_first_audio_ms"]
