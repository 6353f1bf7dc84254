"""The ear and the transcriber together, on real models: what is said is what is read."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import soxr

from pipeline.asr.ear import Ear
from pipeline.asr.echo import EchoCanceller
from pipeline.asr.endpointing import EndpointingSettings
from pipeline.asr.voice_activity import VoiceActivity, load_model
from pipeline.asr.whisper import WhisperSettings, WhisperTranscriber
from pipeline.errors import MissingModelError
from pipeline.events import (
    Hearing,
    Pcm,
    Samples,
    SpeechEnd,
    SpeechOnset,
    SpeechPause,
    SpeechProgress,
    Stirring,
    Utterance,
)
from tests.speech import espeak, silence, spoken
from tests.transcripts import word_error_rate

pytestmark = pytest.mark.models

SENTENCES = (
    "What is the capital of France?",
    "Can you tell me a short story about a dog?",
    "Tell me something interesting about the ocean.",
    "I would like to book a table for four people next Friday evening.",
    "How do I get from the station to the town hall without a car?",
    "Please remind me to call my mother tomorrow after work.",
    "Where can I buy fresh bread near the harbor?",
    "Is it going to rain this afternoon?",
)


@pytest.fixture(scope="module")
def transcriber() -> Iterator[WhisperTranscriber]:
    with ThreadPoolExecutor(1) as executor:
        yield WhisperTranscriber(WhisperSettings(), executor)


def hear(pcm: Pcm, ear: Ear | None = None) -> list[Hearing]:
    ear = ear or Ear(VoiceActivity(load_model()), EndpointingSettings())
    heard: list[Hearing] = []
    for start in range(0, len(pcm) - 959, 960):
        heard += ear.hear(pcm[start : start + 960], (start + 960) / 48_000)
    return heard


def utterances(pcm: Pcm) -> list[Utterance]:
    return [hearing.utterance for hearing in hear(pcm) if isinstance(hearing, SpeechPause)]


def test_the_times_of_an_utterance() -> None:
    speech = spoken("What is the capital of France?")
    voiced = np.flatnonzero(np.abs(speech.astype(int)) > 300)
    heard = hear(np.concatenate((silence(1.0), speech, silence(1.0))))
    assert [type(hearing) for hearing in (heard[0], *heard[-2:])] == [Stirring, SpeechPause, SpeechEnd]
    pause = heard[-2]
    assert isinstance(pause, SpeechPause)
    assert pause.utterance.started_at == pytest.approx(1.0 + voiced[0] / 48_000, abs=0.1)
    assert pause.utterance.ended_at == pytest.approx(1.0 + voiced[-1] / 48_000, abs=0.1)


async def test_what_is_said_is_what_is_read(transcriber: WhisperTranscriber) -> None:
    pairs: list[tuple[str, str]] = []
    for sentence in SENTENCES:
        for speech in (spoken(sentence), espeak(sentence)):
            heard = utterances(np.concatenate((silence(0.5), speech, silence(1.0))))
            transcript = await transcriber.transcribe(heard[-1].samples)
            pairs.append((sentence, transcript.text))
    assert word_error_rate(pairs) <= 0.1, pairs


async def test_the_short_window_reads_what_the_full_one_does(transcriber: WhisperTranscriber) -> None:
    with ThreadPoolExecutor(1) as executor:
        full = WhisperTranscriber(replace(WhisperSettings(), max_short_speech=0.0), executor)
        pairs = [
            ((await full.transcribe(samples)).text, (await transcriber.transcribe(samples)).text)
            for samples in (soxr.resample(spoken(s), 48_000, 16_000) / np.float32(32768) for s in SENTENCES)
        ]
    assert word_error_rate(pairs) <= 0.05, pairs


async def test_what_is_longer_than_the_short_window_is_read_whole(transcriber: WhisperTranscriber) -> None:
    text = " ".join(SENTENCES) + " " + SENTENCES[0] + " Why is the sky blue? Who wrote Romeo and Juliet?"
    samples = soxr.resample(spoken(text), 48_000, 16_000)[: 28 * 16_000] / np.float32(32768)
    assert len(samples) / 16_000 > WhisperSettings().max_short_speech
    transcript = await transcriber.transcribe(samples)
    heard = transcript.text.split()
    assert len(heard) > 50
    assert word_error_rate([(" ".join(text.split()[:50]), " ".join(heard[:50]))]) <= 0.15


@pytest.mark.parametrize("word", ["Yes.", "No.", "Hello there.", "Who wrote Romeo and Juliet?"])
async def test_short_answers_and_hard_names_are_heard(transcriber: WhisperTranscriber, word: str) -> None:
    for speech in (spoken(word), espeak(word)):
        heard = utterances(np.concatenate((silence(0.5), speech, silence(1.0))))
        transcript = await transcriber.transcribe(heard[-1].samples)
        assert transcript.text, transcript
        assert len(transcript.text.split()) <= len(word.split()) + 1, transcript


def _cough(rng: np.random.Generator) -> np.ndarray:
    burst = rng.standard_normal(2400) * np.exp(-np.arange(2400) / 500)
    return np.concatenate((np.zeros(4800), burst, np.zeros(800), burst * 0.6, np.zeros(8000))) * 0.4


@pytest.mark.parametrize("noise", ["white", "hum", "cough", "chord", "digital silence"])
async def test_noise_gives_empty_text(transcriber: WhisperTranscriber, noise: str) -> None:
    rng = np.random.default_rng(5)
    time = np.arange(32_000) / 16_000
    samples = {
        "white": rng.standard_normal(32_000) * 0.1,
        "hum": np.sin(2 * np.pi * 100 * time) * 0.3,
        "cough": _cough(rng),
        "chord": sum(np.sin(2 * np.pi * f * time) for f in (220.0, 277.2, 329.6)) * 0.1,
        "digital silence": np.zeros(32_000),
    }[noise]
    transcript = await transcriber.transcribe(samples.astype(np.float32))
    assert transcript.text == ""
    assert transcript.rejected


async def test_a_second_speech_before_the_commit_is_part_of_the_utterance(
    transcriber: WhisperTranscriber,
) -> None:
    first, second = spoken("What is the capital"), spoken("of the United Kingdom?")
    heard = utterances(np.concatenate((silence(0.5), first, silence(0.9), second, silence(1.0))))
    transcript = await transcriber.transcribe(heard[-1].samples)
    assert word_error_rate([("What is the capital of the United Kingdom?", transcript.text)]) <= 0.2


async def test_a_closed_utterance_is_not_heard_again(transcriber: WhisperTranscriber) -> None:
    ear = Ear(VoiceActivity(load_model()), EndpointingSettings())
    hear(np.concatenate((silence(0.5), spoken("Good morning."), silence(1.0))), ear)
    ear.close_utterance()
    heard = hear(np.concatenate((spoken("Is it going to rain this afternoon?"), silence(1.0))), ear)
    pauses = [hearing for hearing in heard if isinstance(hearing, SpeechPause)]
    transcript = await transcriber.transcribe(pauses[-1].utterance.samples)
    assert word_error_rate([("Is it going to rain this afternoon?", transcript.text)]) <= 0.2


def test_what_is_kept_of_an_utterance_is_bounded() -> None:
    ear = Ear(VoiceActivity(load_model()), EndpointingSettings(max_utterance=3.0))
    babble = np.concatenate([spoken("What is the capital of France and where does it lie?")] * 5)
    heard = hear(np.concatenate((silence(0.5), babble, silence(1.0))), ear)
    pauses = [hearing for hearing in heard if isinstance(hearing, SpeechPause)]
    assert pauses
    assert max(len(pause.utterance.samples) for pause in pauses) <= 4.1 * 16_000


def test_a_muted_microphone_ends_the_utterance() -> None:
    ear = Ear(VoiceActivity(load_model()), EndpointingSettings())
    heard = hear(np.concatenate((silence(0.5), spoken("What is the capital of France?")[:38_400])), ear)
    heard += ear.mute(5.0)  # also in a gap within the speech
    assert [type(hearing) for hearing in heard][-2:] == [SpeechPause, SpeechEnd]


def test_a_pressed_key_is_speech_whatever_is_heard_and_its_release_the_end() -> None:
    ear = Ear(VoiceActivity(load_model()), EndpointingSettings())
    assert ear.release(0.5) == []
    assert [type(hearing) for hearing in ear.press(1.0)] == [SpeechOnset]
    assert ear.press(1.1) == []
    speech = spoken("What is the capital of France?")
    assert hear(np.concatenate((speech, silence(2.0), speech)), ear) == []
    pause, end = ear.release(9.0)
    assert isinstance(pause, SpeechPause)
    assert isinstance(end, SpeechEnd)
    assert len(pause.utterance.samples) / 16_000 > 2.0 + 1.5 * len(speech) / 48_000
    ear.close_utterance()
    assert [type(hearing) for hearing in hear(np.concatenate((silence(0.5), speech)), ear)][:1] == [Stirring]


def test_a_microphone_muted_while_the_key_is_down_ends_the_turn() -> None:
    ear = Ear(VoiceActivity(load_model()), EndpointingSettings())
    ear.press(1.0)
    assert [type(hearing) for hearing in ear.mute(2.0)] == [SpeechPause, SpeechEnd]
    assert ear.release(3.0) == []


class Listener:
    """Hears one stream in parts."""

    def __init__(self) -> None:
        self.ear = Ear(VoiceActivity(load_model()), EndpointingSettings())
        self.now = 0.0

    def hear(self, *parts: Pcm) -> list[Hearing]:
        heard: list[Hearing] = []
        pcm = np.concatenate(parts)
        for start in range(0, len(pcm) - 959, 960):
            self.now += 0.02
            heard += self.ear.hear(pcm[start : start + 960], self.now)
        return heard


def test_whoever_begins_as_an_utterance_is_closed_loses_no_syllable() -> None:
    listener = Listener()
    speech = spoken("What is the capital of France?")
    heard = listener.hear(silence(0.5), speech, silence(2.0))
    assert isinstance(heard[-1], SpeechEnd)
    voiced = int(np.flatnonzero(np.abs(speech) > 300)[0])
    begun = (voiced + 4800) // 960 * 960  # a tenth of a second of it: less than an onset takes
    assert not [h for h in listener.hear(speech[:begun]) if isinstance(h, SpeechOnset)]
    listener.ear.close_utterance()
    heard = listener.hear(speech[begun:], silence(0.5))
    pause = [h for h in heard if isinstance(h, SpeechPause)][-1]
    assert len(pause.utterance.samples) / 16_000 > (len(speech) - voiced) / 48_000


def test_closing_an_utterance_in_mid_speech_keeps_the_ear_collecting() -> None:
    listener = Listener()
    speech = spoken("Please tell me how I get to the nearest railway station from here.")
    listener.hear(silence(0.5), speech[:48_000])
    listener.ear.close_utterance()
    heard = listener.hear(speech[48_000:], silence(0.5))
    pause = [h for h in heard if isinstance(h, SpeechPause)][-1]
    assert len(pause.utterance.samples) / 16_000 > len(speech) / 48_000 - 1.0


class Loudness(VoiceActivity):
    """Takes everything loud for speech."""

    def __init__(self) -> None:
        pass

    def probability(self, window: Samples) -> float:
        loudest = float(np.abs(window).max())
        return 0.9 if loudest > 0.1 else 0.3 if loudest > 0.01 else 0.0

    def reset(self) -> None:
        pass


def tone(seconds: float, amplitude: float = 8000) -> Pcm:
    return (amplitude * np.sin(np.arange(round(seconds * 48_000)) * 0.05)).astype(np.int16)


def test_a_word_that_is_hardly_speech_belongs_to_what_follows_soon() -> None:
    listener = Listener()
    listener.ear = Ear(Loudness(), EndpointingSettings())
    heard = listener.hear(silence(1.0), tone(0.3, 1000), silence(0.8), tone(1.0), silence(0.5))
    assert next(h for h in heard if isinstance(h, SpeechOnset)).at == pytest.approx(1.0, abs=0.05)
    alone = hear(np.concatenate((tone(0.3, 1000), silence(2.0))), Ear(Loudness(), EndpointingSettings()))
    assert alone == [], "by itself it is nothing"


class Remembering:
    """A network that is told its own memory; `started` counts the windows that came with none."""

    def __init__(self) -> None:
        self.started = 0

    def run(self, _: None, inputs: Mapping[str, npt.NDArray[np.float32]]) -> list[npt.NDArray[np.float32]]:
        self.started += not inputs["h"].any()
        speech = float(np.abs(inputs["input"]).max() > 0.1)
        return [np.array([speech]), np.ones((1, 1, 128), np.float32), np.ones((1, 1, 128), np.float32)]


def test_the_networks_memory_of_a_silence_is_short() -> None:
    network = Remembering()
    activity = VoiceActivity(network)  # type: ignore[arg-type]
    loud, quiet = np.full(512, 0.5, np.float32), np.zeros(512, np.float32)
    for window in (loud, *[quiet] * 60, loud, *[quiet] * 60):
        activity.probability(window)
    assert network.started == 1, "pauses of less than 2 s are remembered"
    for _ in range(130):
        activity.probability(quiet)
    assert network.started == 4, "and silence no longer than that"


@pytest.mark.parametrize(("pause", "kept"), [(0.6, True), (1.8, False)])
def test_a_word_too_short_for_an_onset_belongs_to_what_follows_soon(pause: float, kept: bool) -> None:
    listener = Listener()
    listener.ear = Ear(Loudness(), EndpointingSettings())
    heard = listener.hear(silence(1.0), tone(0.07), silence(pause), tone(1.0), silence(0.5))
    onset = next(h for h in heard if isinstance(h, SpeechOnset))
    utterance = next(h for h in heard if isinstance(h, SpeechPause)).utterance
    begun = 1.0 if kept else 1.07 + pause
    assert onset.at == pytest.approx(begun, abs=0.05)
    assert utterance.started_at == pytest.approx(begun, abs=0.05)
    assert len(utterance.samples) / 16_000 == pytest.approx(2.07 + pause - begun + 0.3 + 0.1, abs=0.1)


def test_switching_a_microphone_off_leaves_the_canceller_alone() -> None:
    class Counted(EchoCanceller):
        blocks = 0

        def clean(self, microphone: Pcm) -> Pcm:
            self.blocks += 1
            return super().clean(microphone)

    echo = Counted()
    ear = Ear(VoiceActivity(load_model()), EndpointingSettings(), echo=echo)
    hear(silence(0.5), ear)
    before = echo.blocks
    ear.mute(1.0)
    assert echo.blocks == before


def test_speech_is_told_of_while_it_goes_on() -> None:
    ear = Ear(VoiceActivity(load_model()), EndpointingSettings(), progress=0.4)
    speech = spoken("Please tell me how I get to the nearest railway station from here.")
    heard = hear(np.concatenate((silence(0.5), speech, silence(0.5))), ear)
    lengths = [len(each.utterance.samples) for each in heard if isinstance(each, SpeechProgress)]
    assert len(lengths) >= 2
    assert lengths == sorted(lengths)


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as executor, pytest.raises(MissingModelError, match=r"asr\.model"):
        WhisperTranscriber(WhisperSettings(model=tmp_path), executor)


@pytest.mark.human
async def test_human_speech(transcriber: WhisperTranscriber) -> None:
    folder = Path(__file__).parents[4] / "shared" / "speech"
    if not folder.is_dir():
        pytest.skip("no recordings of human speech beside the checkout")
    from services.lab.speech_file import load

    said = {
        "spk1_snt1.wav": "The child almost hurt the small dog.",
        "spk1_snt2.wav": "Drop the two when you add the figures.",
        "spk2_snt1.wav": "We are sure that one war is enough.",
        "spk2_snt2.wav": "What joy there is in living.",
        "jfk.flac": "And so, my fellow Americans, ask not what your country can do for you; "
        "ask what you can do for your country.",
    }
    pairs = []
    for name, text in said.items():
        heard = utterances(np.concatenate((silence(0.5), load(folder / name).pcm, silence(1.0))))
        pairs.append((text, (await transcriber.transcribe(heard[-1].samples)).text))
    assert word_error_rate(pairs) <= 0.05, pairs
