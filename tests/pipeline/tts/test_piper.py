import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import soxr
from faster_whisper import WhisperModel
from piper import PiperConfig, PiperVoice
from piper.phoneme_ids import DEFAULT_PHONEME_ID_MAP
from whisper_normalizer.english import EnglishTextNormalizer

from pipeline.asr.whisper import packaged_model
from pipeline.errors import ConfigError, MissingModelError, SynthesisError
from pipeline.events import HEARING_RATE, WIRE_RATE, SpeechChunk
from pipeline.tts.clauses import ClauseCutter
from pipeline.tts.pieces import SHORTEST, whole
from pipeline.tts.piper import MAX_CHARACTERS, PiperSettings, PiperSynthesizer, Voice, open_voice
from pipeline.tts.vits import SplitNetwork, WholeNetwork
from pipeline.tts.voice_files import VoiceFiles, find_voice, prepare_voice
from pipeline.tts.waveform import CLAUSE_PAUSE, CUT_PAUSE, LEAD, SENTENCE_PAUSE, audible_span
from pipeline.tts.words import is_sound
from tests.pipeline.tts.networks import SplitTone

RATE = 22_050
HOP = 256


class ToneSession:
    """Stands in for the network: a steady tone, `frames` hops long for every phoneme id."""

    def __init__(self, frames: int = 5, alignments: bool = True, miscount: int = 0) -> None:
        self.frames = frames
        self.alignments = alignments
        self.miscount = miscount
        self.runs = 0

    def run(self, _outputs: None, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        self.runs += 1
        count = inputs["input"].shape[1]
        audio = 0.3 * np.sin(np.arange(count * self.frames * HOP) / 10, dtype=np.float32)
        widths = np.full(count - self.miscount, self.frames, np.float32)
        return [audio[None, None], widths[None, None]] if self.alignments else [audio[None, None]]


def tone_config(espeak_voice: str = "en-us") -> PiperConfig:
    config = {
        "num_symbols": 256,
        "num_speakers": 1,
        "audio": {"sample_rate": RATE},
        "espeak": {"voice": espeak_voice},
        "phoneme_id_map": DEFAULT_PHONEME_ID_MAP,
    }
    return PiperConfig.from_dict(config)


def tone_voice(session: ToneSession, espeak_voice: str = "en-us") -> Voice:
    piper = PiperVoice(session=session, config=tone_config(espeak_voice))
    return Voice(piper, WholeNetwork(piper))


def split_voice(tone: SplitTone) -> Voice:
    config = tone_config()
    network = SplitNetwork(config, tone.text, tone.flow, tone.decoder)
    return Voice(PiperVoice(session=None, config=config), network)


async def spoken(voice: PiperSynthesizer, text: str) -> SpeechChunk:
    return await whole(voice.stream(text))


async def pieces_of(voice: PiperSynthesizer, text: str) -> list[SpeechChunk]:
    return [piece async for piece in voice.stream(text)]


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with ThreadPoolExecutor(1, thread_name_prefix="tts") as pool:
        yield pool


def check(chunk: SpeechChunk, text: str) -> None:
    assert (chunk.text, chunk.sample_rate, chunk.pcm.dtype) == (text, WIRE_RATE, np.int16)
    assert [word.text for word in chunk.words] == text.split()
    for times in (chunk.phonemes, chunk.words):
        edges = [0.0, *(edge for one in times for edge in (one.start, one.end)), chunk.duration]
        assert edges == sorted(edges)


async def test_times_follow_the_voice(executor: Executor) -> None:
    chunk = await spoken(PiperSynthesizer(tone_voice(ToneSession()), executor), "Hello.")
    check(chunk, "Hello.")
    assert "".join(phoneme.symbol for phoneme in chunk.phonemes) == "həlˈoʊ."
    # Each symbol lasts two ids, its own and the pad after it; BOS and its pad come first.
    widths = [phoneme.end - phoneme.start for phoneme in chunk.phonemes]
    assert widths == pytest.approx([2 * 5 * HOP / RATE] * 7)
    assert chunk.phonemes[0].start == pytest.approx(2 * 5 * HOP / RATE)
    assert chunk.aligned


async def test_several_sentences_for_espeak_are_one_chunk(executor: Executor) -> None:
    session = ToneSession()
    chunk = await spoken(PiperSynthesizer(tone_voice(session), executor), "Yes! No? Well.")
    check(chunk, "Yes! No? Well.")
    assert session.runs == 3
    yes, no, _ = chunk.words
    assert no.start - yes.end > SENTENCE_PAUSE


@pytest.mark.parametrize("text", ["Dr. Smith is here.", "So, e.g. Paris is it.", "The U.S. Army, St. Louis."])
async def test_an_abbreviation_does_not_end_the_sentence(text: str, executor: Executor) -> None:
    session = ToneSession()
    check(await spoken(PiperSynthesizer(tone_voice(session), executor), text), text)
    assert session.runs == 1


@pytest.mark.parametrize("session", [ToneSession(alignments=False), ToneSession(miscount=1)])
async def test_a_missing_alignment_is_counted_and_spread_evenly(
    session: ToneSession, executor: Executor
) -> None:
    voice = PiperSynthesizer(tone_voice(session), executor)
    chunk = await spoken(voice, "Hello there.")
    check(chunk, "Hello there.")
    assert not chunk.aligned
    assert voice.unaligned_chunks == 1
    assert chunk.words[0].start > 0


@pytest.mark.parametrize("text", ["", " ", "—", "...", "🎉", "\x00", "你好", "\ud800"])
async def test_nothing_to_say_is_refused(text: str, executor: Executor) -> None:
    with pytest.raises(SynthesisError, match="nothing to say"):
        await spoken(PiperSynthesizer(tone_voice(ToneSession()), executor), text)


async def test_what_cannot_be_said_does_not_stop_the_rest(executor: Executor) -> None:
    text = "Hi \x00 🎉 [[həˈloʊ]] 你好 — there…"
    check(await spoken(PiperSynthesizer(tone_voice(ToneSession()), executor), text), text)


async def test_too_much_text_is_refused(executor: Executor) -> None:
    with pytest.raises(SynthesisError, match=f"at most {MAX_CHARACTERS}"):
        await spoken(PiperSynthesizer(tone_voice(ToneSession()), executor), "a " * MAX_CHARACTERS)


async def test_a_very_long_sentence_is_run_in_parts(executor: Executor) -> None:
    session = ToneSession(frames=1)
    text = " ".join(["123,456,789"] * 20)
    chunk = await spoken(PiperSynthesizer(tone_voice(session), executor), text)
    check(chunk, text)
    assert session.runs > 1


# ── in pieces ──────────────────────────────────────────────────────────────────────────────────


def adjoin(pieces: list[SpeechChunk]) -> None:
    for before, after in pairwise(pieces):
        assert before.duration - before.phonemes[-1].end == pytest.approx(0, abs=1e-4)
        assert after.phonemes[0].start == pytest.approx(0, abs=1e-4)


async def test_a_clause_comes_in_pieces_of_whole_words_that_adjoin(executor: Executor) -> None:
    text = "One of the people — there was another one of them — said that it would rain."
    pieces = await pieces_of(PiperSynthesizer(split_voice(SplitTone()), executor), text)
    assert len(pieces) > 2
    for piece in pieces:
        check(piece, piece.text)
    adjoin(pieces)
    chunk = await whole(aiter_of(pieces))
    check(chunk, text)
    at_once = await spoken(PiperSynthesizer(tone_voice(ToneSession()), executor), text)
    assert [p.symbol for p in chunk.phonemes] == [p.symbol for p in at_once.phonemes]
    for streamed, known in zip(chunk.words, at_once.words, strict=True):
        assert (streamed.start, streamed.end) == pytest.approx((known.start, known.end), abs=0.001)


async def aiter_of(pieces: list[SpeechChunk]) -> AsyncIterator[SpeechChunk]:
    for piece in pieces:
        yield piece


async def test_the_first_piece_takes_only_its_own_part_of_the_work(executor: Executor) -> None:
    tone = SplitTone()
    voice = PiperSynthesizer(split_voice(tone), executor)
    async with aclosing(voice.stream("I would recommend that you bring an umbrella.")) as pieces:
        first = await anext(pieces)
    assert first.duration >= SHORTEST
    made = tone.decoded * HOP / RATE
    assert first.duration < made < first.duration + 0.3
    # The stream was closed: nothing more is made.
    await asyncio.get_running_loop().run_in_executor(executor, int)
    assert tone.decoded * HOP / RATE == made


async def test_the_words_of_two_clauses_may_be_made_in_turn(executor: Executor) -> None:
    """One executor serves all sessions: a short reply need not wait for the end of a long one."""
    voice = PiperSynthesizer(split_voice(SplitTone()), executor)
    first, second = (voice.stream(f"{name} would recommend that you bring it.") for name in ("Joe", "Ann"))
    texts = [(await anext(stream)).text.split()[0] for stream in (first, second, first)]
    assert texts[:2] == ["Joe", "Ann"]
    await first.aclose()
    await second.aclose()


@pytest.mark.parametrize("text", ["Yes.", "I do."])
async def test_a_very_short_clause_is_one_piece(text: str, executor: Executor) -> None:
    pieces = await pieces_of(PiperSynthesizer(split_voice(SplitTone(frames=2)), executor), text)
    assert [piece.text for piece in pieces] == [text]


async def test_a_number_spoken_over_several_runs_is_one_word(executor: Executor) -> None:
    text = "It is 123,456,789,123,456,789,123,456,789,123,456,789,123,456,789 in all of them."
    tone = SplitTone(frames=1)
    pieces = await pieces_of(PiperSynthesizer(split_voice(tone), executor), text)
    assert tone.begun > 1
    assert [word for piece in pieces for word in piece.text.split()] == text.split()
    for piece in pieces:
        check(piece, piece.text)
        # No sound of a word that is not in the piece.
        assert max(p.end for p in piece.phonemes if is_sound(p.symbol)) <= piece.words[-1].end + 0.001


async def test_a_split_voice_that_miscounts_is_spread_evenly_and_not_cut(executor: Executor) -> None:
    voice = PiperSynthesizer(split_voice(SplitTone(miscount=1)), executor)
    pieces = await pieces_of(voice, "I would recommend that you bring an umbrella.")
    assert [piece.aligned for piece in pieces] == [False]
    assert voice.unaligned_chunks == 1


async def test_a_voice_that_fails_in_the_middle_says_so(executor: Executor) -> None:
    voice = PiperSynthesizer(split_voice(SplitTone(fail_after=1)), executor)
    stream = voice.stream("I would recommend that you bring an umbrella.")
    assert (await anext(stream)).text
    with pytest.raises(SynthesisError, match="the voice failed"):
        await anext(stream)


def test_a_voice_of_another_language_is_refused(executor: Executor) -> None:
    with pytest.raises(ConfigError, match="'de'"):
        PiperSynthesizer(tone_voice(ToneSession(), "de"), executor)


def test_files_that_are_no_voice_are_refused(tmp_path: Path) -> None:
    files = VoiceFiles(tmp_path / "v.onnx", tmp_path / "v.onnx.json")
    files.model.write_bytes(b"no model")
    (tmp_path / "v.zip").write_bytes(b"no parts")
    whole_config = find_voice().config.read_text(encoding="utf-8")
    for config, parts in (
        ("{", None),
        ("{}", None),
        (whole_config, None),
        (whole_config, tmp_path / "v.zip"),
    ):
        files.config.write_text(config, encoding="utf-8")
        with pytest.raises(MissingModelError, match=r"v\.onnx is not a Piper voice"):
            open_voice(replace(files, parts=parts))


# ── the real voice ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Voice:
    return open_voice(prepare_voice(find_voice(), tmp_path_factory.mktemp("voice")))


STILL = PiperSettings(noise_scale=0, noise_w=0)
"""The same samples in every run."""


@pytest.fixture
async def joe(voice: Voice, executor: Executor) -> AsyncIterator[PiperSynthesizer]:
    synthesizer = PiperSynthesizer(voice, executor, STILL)
    await synthesizer.warm()
    yield synthesizer
    assert synthesizer.unaligned_chunks == synthesizer.whole_clauses == 0


SENTENCES = [
    "The capital of France is Paris, and most of the people in the city take the train.",
    "Sure, I can help you with that. First, tell me which room you are in.",
    "Dr. Smith paid $1,250.00 for the machine in 1998, and he still uses it every day.",
    "I would recommend that you bring an umbrella, since it may rain in the afternoon.",
    "My name is Joe — and I am a virtual assistant. It costs 3.5 times as much.",
]


def cut(text: str) -> list[str]:
    cutter = ClauseCutter()
    return cutter.feed(text) + cutter.finish()


def word_errors(said: list[str], heard: list[str]) -> int:
    row = list(range(len(heard) + 1))
    for index, word in enumerate(said, 1):
        above, row = row, [index]
        for at, other in enumerate(heard, 1):
            row.append(min(above[at] + 1, row[-1] + 1, above[at - 1] + (word != other)))
    return row[-1]


@pytest.mark.models
async def test_clauses_played_one_after_the_other_are_understood(joe: PiperSynthesizer) -> None:
    whisper = WhisperModel(str(packaged_model()), device="cpu", compute_type="int8", cpu_threads=2)
    normal = EnglishTextNormalizer()
    errors = words = 0
    for text in SENTENCES:
        clauses = cut(text)
        assert len(clauses) > 1
        pcm = np.concatenate([(await spoken(joe, clause)).pcm for clause in clauses])
        heard, _ = whisper.transcribe(
            soxr.resample(pcm / np.float32(32768), WIRE_RATE, HEARING_RATE), language="en", beam_size=5
        )
        said = normal(text).split()
        errors += word_errors(said, normal(" ".join(segment.text for segment in heard)).split())
        words += len(said)
    # Measured over 16 sentences: 3 to 6 % with noise, 5 % without, some of it Whisper tiny's own.
    assert errors / words <= 0.1


@pytest.mark.models
@pytest.mark.parametrize(
    ("text", "pauses"),
    [("I am fine. Now, here we are.", 1), ("One, two, three.", 2), ("Yes — no; maybe: fine.", 3)],
)
async def test_a_word_starts_when_the_sound_after_a_pause_does(
    text: str, pauses: int, joe: PiperSynthesizer
) -> None:
    """Against the waveform, which the alignment never saw."""
    chunk = await spoken(joe, text)
    check(chunk, text)
    loud = np.abs(chunk.pcm[: len(chunk.pcm) // 480 * 480].reshape(-1, 480)).max(axis=1) > 300
    sounds = np.flatnonzero(np.diff(np.r_[False, loud, False].astype(int))).reshape(-1, 2) / 100
    onsets = [onset for (_, before), (onset, _) in pairwise(sounds) if onset - before >= 0.1]
    assert len(onsets) >= pauses
    for onset in onsets:
        assert min(abs(word.start - onset) for word in chunk.words) < 0.05


@pytest.mark.models
async def test_sound_begins_at_once_and_pauses_are_in_the_audio(joe: PiperSynthesizer) -> None:
    for text, least, most in (
        ("It is so.", SENTENCE_PAUSE, 0.6),
        ("Sure, I can,", CLAUSE_PAUSE, 0.6),
        ("The capital of", 0.0, CUT_PAUSE),
    ):
        chunk = await spoken(joe, text)
        first, last = audible_span(chunk.pcm / np.float32(32768), WIRE_RATE)
        # What is at the threshold of hearing at one rate may not be at another: 10 ms, 50 at the end.
        assert first / WIRE_RATE <= LEAD + 0.01
        assert least - 0.01 <= chunk.duration - last / WIRE_RATE <= most + 0.05


@pytest.mark.models
async def test_short_and_long_clauses_are_equally_loud_and_never_clip(joe: PiperSynthesizer) -> None:
    levels = []
    for text in ("Yes, I do.", "Of course,", SENTENCES[0], SENTENCES[3]):
        samples = (await spoken(joe, text)).pcm / np.float32(32768)
        frames = np.sqrt(np.mean(np.square(samples[: len(samples) // 480 * 480].reshape(-1, 480)), axis=1))
        levels.append(20 * np.log10(np.sqrt(np.mean(np.square(frames[frames > 0.01])))))
        assert np.abs(samples).max() < 1
    assert np.ptp(levels) < 6
    assert -23 < np.mean(levels) < -16


@pytest.mark.models
async def test_without_noise_the_same_text_gives_the_same_samples(voice: Voice, executor: Executor) -> None:
    still, lively = PiperSynthesizer(voice, executor, STILL), PiperSynthesizer(voice, executor)
    slow = PiperSynthesizer(voice, executor, PiperSettings(noise_scale=0, noise_w=0, length_scale=1.5))
    first, second = await spoken(still, "Hello there."), await spoken(still, "Hello there.")
    np.testing.assert_array_equal(first.pcm, second.pcm)
    assert not np.array_equal((await spoken(lively, "Hello there.")).pcm, first.pcm)
    assert (await spoken(slow, "Hello there.")).duration > 1.2 * first.duration


@pytest.mark.models
async def test_the_voice_as_shipped_still_speaks(executor: Executor) -> None:
    shipped = PiperSynthesizer(open_voice(find_voice()), executor)
    chunk = await spoken(shipped, "Hello there.")
    check(chunk, "Hello there.")
    assert (chunk.aligned, shipped.unaligned_chunks, shipped.whole_clauses) == (False, 1, 1)


@pytest.mark.models
@pytest.mark.parametrize("text", [*SENTENCES, "Photosynthesis is the process by which,", "The capital of"])
async def test_pieces_sound_like_the_whole(text: str, joe: PiperSynthesizer, executor: Executor) -> None:
    """Against the voice as shipped, which makes its audio in one run."""
    pieces = await pieces_of(joe, text)
    assert len(pieces) > 1
    for piece in pieces:
        check(piece, piece.text)
    at_once = await spoken(PiperSynthesizer(open_voice(find_voice()), executor, STILL), text)
    streamed = np.concatenate([piece.pcm for piece in pieces]).astype(np.float64)
    known = at_once.pcm.astype(np.float64)
    # Where sound ends is looked for on a grid of 5 ms, which begins with the last piece.
    assert abs(len(streamed) - len(known)) <= 0.005 * WIRE_RATE * text.count(" ")
    if len(streamed) == len(known):
        assert np.corrcoef(streamed, known)[0, 1] > 0.999
    count = min(len(pieces[0].pcm) + len(pieces[1].pcm) // 2, len(known))
    error = np.abs(streamed[:count] - known[:count])
    assert 20 * np.log10(max(error.max(), 1) / np.abs(known).max()) < -60


@pytest.mark.models
async def test_there_is_no_click_between_pieces(joe: PiperSynthesizer) -> None:
    for text in SENTENCES:
        pieces = await pieces_of(joe, text)
        speech = np.concatenate([piece.pcm for piece in pieces]).astype(np.float64)
        bend = np.abs(np.diff(speech, n=2))
        for seam in np.cumsum([len(piece.pcm) for piece in pieces])[:-1]:
            around = bend[seam - 480 : seam + 480]
            assert bend[seam - 2 : seam + 2].max() <= max(np.delete(around, range(478, 482)).max(), 100)
