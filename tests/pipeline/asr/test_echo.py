"""The avatar's voice comes back through loudspeaker, room, microphone and Opus: it is not heard as a user."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import av
import numpy as np
import pytest
import soxr

from pipeline.asr.adaptive_filter import BLOCK
from pipeline.asr.ear import Ear
from pipeline.asr.echo import EchoCanceller
from pipeline.asr.endpointing import EndpointingSettings
from pipeline.asr.self_speech import is_own_speech
from pipeline.asr.voice_activity import VoiceActivity, load_model
from pipeline.asr.whisper import WhisperSettings, WhisperTranscriber
from pipeline.events import WIRE_RATE, Pcm, SpeechOnset
from tests.room import LIVING_ROOM, OFFICE, Room, echo, level, microphone
from tests.speech import espeak, silence, steady_speech
from tests.transcripts import word_error_rate

_REPLY = (
    "The town hall is on the market square, about ten minutes on foot from the station.",
    "Go straight along the river until you see the old stone bridge, and then turn left.",
)
_USER_SAYS = "How much does a ticket to the museum cost?"
_AT = 7.0
_ROUND_TRIP = 0.12
"""Seconds from `played` to the echo's arrival that no client is below: jitter buffer, sound card, uplink."""
_LATE = 0.26
"""Seconds by which echo may put off an onset: 250 ms and a rounding."""
_SPEECH = Path(__file__).resolve().parents[4] / "shared" / "speech"


def _reply() -> Pcm:
    pieces = [np.concatenate((steady_speech(sentence).pcm, silence(0.25))) for sentence in _REPLY]
    return np.concatenate((silence(0.4), *pieces, silence(2.5)))


def _user(speech: Pcm, at: float = _AT) -> Pcm:
    return np.concatenate((silence(at), speech, silence(30)))[: len(_reply())]


def _clean(uplink: Pcm, reply: Pcm, canceller: EchoCanceller | None = None) -> tuple[Pcm, Pcm]:
    """Cleaned, and the residual."""
    canceller = canceller or EchoCanceller()
    cleaned, residual = [], []
    for start in range(0, len(uplink) - BLOCK + 1, BLOCK):
        canceller.played(reply[start : start + BLOCK])
        cleaned.append(canceller.clean(uplink[start : start + BLOCK]))
        residual.append(canceller.residual)
    return np.concatenate(cleaned), np.concatenate(residual)


def _onsets(pcm: Pcm) -> list[float]:
    """When each onset was decided."""
    ear = Ear(VoiceActivity(load_model()), EndpointingSettings())
    decided = []
    for start in range(0, len(pcm) - BLOCK + 1, BLOCK):
        at = (start + BLOCK) / WIRE_RATE
        decided += [
            at for hearing in ear.hear(pcm[start : start + BLOCK], at) if isinstance(hearing, SpeechOnset)
        ]
    return decided


def _first_after(onsets: list[float], at: float) -> float:
    return next((onset for onset in onsets if onset > at), float("inf"))


@pytest.mark.models
@pytest.mark.parametrize(
    ("room", "echo_db", "delay", "drift_ppm"),
    [
        (OFFICE, -20, 0.0, 100),
        (OFFICE, -10, 0.3, -100),
        (OFFICE, 0, 0.1, 100),
        (LIVING_ROOM, -20, 0.3, -100),
        (LIVING_ROOM, -10, 0.1, 100),
        (LIVING_ROOM, 0, 0.0, -100),
    ],
)
def test_an_avatar_that_hears_itself_hears_nobody(
    room: Room, echo_db: float, delay: float, drift_ppm: float
) -> None:
    reply = _reply()
    uplink = microphone(echo(reply, room, delay=_ROUND_TRIP + delay, drift_ppm=drift_ppm), echo_db=echo_db)
    assert _onsets(uplink), "without the canceller the avatar interrupts itself"
    assert _onsets(_clean(uplink, reply)[0]) == []


@pytest.mark.models
@pytest.mark.parametrize(("room", "echo_db"), [(OFFICE, -10), (LIVING_ROOM, -20), (LIVING_ROOM, 0)])
async def test_a_user_over_the_echo_is_heard_at_once_and_understood(room: Room, echo_db: float) -> None:
    reply, user = _reply(), _user(espeak(_USER_SAYS))
    uplink = microphone(echo(reply, room, delay=_ROUND_TRIP, drift_ppm=100), user, echo_db=echo_db)
    cleaned, residual = _clean(uplink, reply)
    onset = _first_after(_onsets(cleaned), _AT)
    assert onset - _first_after(_onsets(user), _AT) <= _LATE
    end = _AT + len(espeak(_USER_SAYS)) / WIRE_RATE
    heard = residual[round((_AT - 0.1) * WIRE_RATE) : round(end * WIRE_RATE)]
    with ThreadPoolExecutor(1) as executor:
        transcriber = WhisperTranscriber(WhisperSettings(), executor)
        samples = soxr.resample(heard.astype(np.float32) / 32768, WIRE_RATE, 16_000)
        transcript = await transcriber.transcribe(samples)
    assert word_error_rate([(_USER_SAYS, transcript.text)]) <= 0.34, transcript.text


@pytest.mark.models
@pytest.mark.human
@pytest.mark.parametrize("recording", ["spk1_snt1.wav", "spk2_snt1.wav"])
def test_a_person_over_the_echo_is_heard_at_once(recording: str) -> None:
    if not _SPEECH.is_dir():
        pytest.skip("no recordings of people beside the checkout")
    with av.open(str(_SPEECH / recording)) as file:
        rate = file.streams.audio[0].rate
        audio = np.concatenate([frame.to_ndarray().reshape(-1) for frame in file.decode(audio=0)])
    user = _user(soxr.resample(audio.astype(np.int16), rate, WIRE_RATE))
    reply = _reply()
    uplink = microphone(echo(reply, OFFICE, delay=_ROUND_TRIP + 0.1, drift_ppm=-100), user, echo_db=-10)
    onset = _first_after(_onsets(_clean(uplink, reply)[0]), _AT)
    assert onset - _first_after(_onsets(user), _AT) <= _LATE


def test_what_comes_in_while_nothing_is_played_goes_through_untouched() -> None:
    uplink = np.random.default_rng(0).integers(-9000, 9000, WIRE_RATE).astype(np.int16)
    cleaned, residual = _clean(uplink, silence(1.0))
    assert np.array_equal(cleaned, uplink)
    assert np.array_equal(residual, uplink)


def test_an_answer_to_a_very_short_first_reply_is_not_muted() -> None:
    reply = np.concatenate((_noise(0.3), silence(2.0)))
    uplink = np.concatenate((silence(1.0), _noise(1.3, seed=2)))
    cleaned, _ = _clean(uplink, reply)
    assert level(cleaned[round(1.2 * WIRE_RATE) :]) > 0.9 * level(uplink[round(1.2 * WIRE_RATE) :])


@pytest.mark.parametrize("size", [480, 960, 1000, 2880])
def test_any_length_comes_back_as_long_and_in_order(size: int) -> None:
    uplink = np.random.default_rng(0).integers(-9000, 9000, 30 * size).astype(np.int16)
    canceller = EchoCanceller()
    pieces = [canceller.clean(uplink[start : start + size]) for start in range(0, len(uplink), size)]
    assert {len(piece) for piece in pieces} == {size}
    out = np.concatenate(pieces)
    late = int(np.flatnonzero(out)[0])
    assert late <= BLOCK
    assert np.array_equal(out[late:], uplink[: len(out) - late])


def test_lost_packets_and_a_silent_microphone_do_not_let_echo_return() -> None:
    """What was played and not asked for is skipped, and the filter knows where the echo is then."""
    reply = _long_reply()
    uplink = microphone(echo(reply, OFFICE, delay=_ROUND_TRIP + 0.1), echo_db=0)
    canceller = EchoCanceller()
    shares: list[float] = []
    for index in range(len(uplink) // BLOCK):
        canceller.played(reply[index * BLOCK : (index + 1) * BLOCK])
        if 400 <= index < 405:
            continue
        block = uplink[index * BLOCK : (index + 1) * BLOCK]
        canceller.clean(block)
        shares.append(level(canceller.residual) / level(block))
    before, after = np.mean(shares[300:400]), np.mean(shares[-150:])
    assert before < 0.5
    assert after < 0.5


@pytest.mark.parametrize("step", [0.06, -0.06])
def test_an_echo_that_comes_later_or_sooner_than_it_did_is_learnt_anew(step: float) -> None:
    reply = _long_reply()
    before = echo(reply, OFFICE, delay=_ROUND_TRIP + 0.1)
    after = echo(reply, OFFICE, delay=_ROUND_TRIP + 0.1 + step)
    turn = 8 * WIRE_RATE
    uplink = microphone(np.concatenate((before[:turn], after[turn:])), echo_db=0)
    _, residual = _clean(uplink, reply)
    start = 14 * WIRE_RATE
    assert level(residual[start:]) < 0.6 * level(uplink[start : len(residual)])


def test_the_share_of_the_echo_tells_echo_from_a_user() -> None:
    reply = _long_reply()[: 6 * WIRE_RATE]
    canceller = EchoCanceller()
    assert canceller.echo_share == 0.0
    _clean(microphone(echo(reply, OFFICE, delay=_ROUND_TRIP), echo_db=0), reply, canceller)
    assert canceller.echo_share > 0.6
    _clean(_noise(0.6, seed=3), silence(0.6), canceller)
    assert canceller.echo_share < 0.1


def test_a_frame_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="960 samples"):
        EchoCanceller().played(np.zeros(480, np.int16))


_SAID = ["turn", "left", "at", "the", "old", "stone", "bridge,", "and", "then"]


@pytest.mark.parametrize(
    "transcript",
    [
        "Turn left at the old stone bridge.",
        "at the old stone bridge and",
        "Turn left at the cold stone bridge and then.",
        "stone bridge",
    ],
)
def test_the_avatars_words_of_this_moment_are_its_own(transcript: str) -> None:
    said = _SAID if len(transcript.split()) > 2 else _SAID[5:8]
    assert is_own_speech(transcript, said)


@pytest.mark.parametrize(
    ("transcript", "said"),
    [
        ("Which stone bridge do you mean?", _SAID),
        ("Stop, where is the old stone bridge?", _SAID),
        ("the old stone bridge", ()),
        ("left", _SAID),
        ("Wait.", _SAID),
        ("", _SAID),
        ("How much does a ticket cost?", _SAID),
        ("I then turn and left the old bridge", _SAID),
    ],
)
def test_a_user_is_not_taken_for_the_avatar(transcript: str, said: tuple[str, ...]) -> None:
    assert not is_own_speech(transcript, said)


def _long_reply() -> Pcm:
    return np.concatenate([espeak(sentence) for sentence in (*_REPLY, *_REPLY)])


def _noise(seconds: float, seed: int = 1) -> Pcm:
    """As loud as speech."""
    signal = np.random.default_rng(seed).standard_normal(round(seconds * WIRE_RATE))
    return np.asarray(signal * 2000, np.int16)
