import pytest

from pipeline.timeline.causes import Cause
from pipeline.timeline.ledger import Emitted
from pipeline.timeline.speech_gaps import VoicedClause, speech_gaps

RATE = 48_000


def reply(
    *silences: tuple[int, float], frames: int = 100, late: dict[int, float] | None = None
) -> list[Emitted]:
    """A reply's frames; before frame k come so many seconds of silence that was sent, and what follows
    left `late` seconds late."""
    found, pts, shift = [], 0, 0.0
    quiet = dict(silences)
    for index in range(frames):
        pts += round(quiet.get(index, 0.0) * RATE)
        shift = (late or {}).get(index, 0.0)
        made = 10.0 + pts / RATE
        found.append(Emitted(pts, made, "t", index * 0.02, (index + 1) * 0.02, sent_at=made + 0.001 + shift))
        pts += 960
    return found


def played(delay: float = 0.1, jumps: dict[int, float] | None = None):  # type: ignore[no-untyped-def]
    """A client that plays what it gets after `delay`, later by what `jumps` says from a pts on."""

    def heard_at(pts: int) -> float | None:
        late = max((extra for at, extra in (jumps or {}).items() if pts >= at), default=0.0)
        return 10.0 + pts / RATE + delay + late

    return heard_at


def test_a_smooth_reply_has_none() -> None:
    assert speech_gaps(reply(), RATE, [], played()) == []


def test_natural_pauses_are_in_the_reply_and_are_none() -> None:
    clauses = [VoicedClause(0.0, 9.0, 9.5), VoicedClause(1.0, 9.6, 9.9)]
    assert speech_gaps(reply(), RATE, clauses, played()) == []


@pytest.mark.parametrize(("written_after", "cause"), [(0.45, Cause.LLM), (-0.5, Cause.TTS)])
def test_silence_between_clauses_is_whoever_was_waited_for(written_after: float, cause: Cause) -> None:
    frames = reply((50, 0.5))
    dry = frames[49].made_at + 0.02
    clauses = [VoicedClause(0.0, 9.0, 9.5), VoicedClause(1.0, dry + written_after, dry + 0.48)]
    (gap,) = speech_gaps(frames, RATE, clauses, played())
    assert gap.duration == pytest.approx(0.5)
    assert gap.at == pytest.approx(dry + 0.1)
    assert gap.cause is cause


def test_silence_in_mid_clause_is_the_voices() -> None:
    (gap,) = speech_gaps(reply((50, 0.1)), RATE, [VoicedClause(0.0, 9.0, 9.5)], played())
    assert gap.cause is Cause.TTS


def test_less_than_40_ms_is_no_gap() -> None:
    assert speech_gaps(reply((50, 0.03)), RATE, [], played()) == []


def test_a_held_reply_has_no_gap() -> None:
    frames = reply((50, 2.0))
    assert speech_gaps(frames, RATE, [], played(), held=[(11.0, 12.9)]) == []


def test_what_only_the_client_missed_is_the_networks() -> None:
    frames = reply()
    (gap,) = speech_gaps(frames, RATE, [], played(jumps={frames[50].pts: 0.2}))
    assert (gap.cause, gap.duration) == (Cause.NETWORK, pytest.approx(0.2))


def test_what_was_made_in_time_and_left_late_is_the_encoders_or_the_loops() -> None:
    frames = reply(late=dict.fromkeys(range(50, 100), 0.2))
    heard = played(jumps={frames[50].pts: 0.2})
    assert speech_gaps(frames, RATE, [], heard)[0].cause is Cause.ENCODE
    lags = [(frames[50].made_at, frames[50].made_at + 0.2)]
    assert speech_gaps(frames, RATE, [], heard, lags=lags)[0].cause is Cause.LOOP


def test_time_stamps_that_were_skipped_while_the_loop_stood_still_are_the_loops() -> None:
    frames = reply((50, 0.2))
    lags = [(frames[49].made_at + 0.01, frames[50].made_at)]
    (gap,) = speech_gaps(frames, RATE, [VoicedClause(0.0, 9.0, 9.5)], played(), lags=lags)
    assert gap.cause is Cause.LOOP


def test_a_track_that_made_nothing_at_all_was_not_run() -> None:
    frames = reply((50, 0.08))
    clauses = [VoicedClause(0.0, 9.0, 9.5)]
    assert speech_gaps(frames, RATE, clauses, played())[0].cause is Cause.TTS, "silence was made in between"
    frames[50].follows = frames[49].pts
    assert speech_gaps(frames, RATE, clauses, played())[0].cause is Cause.LOOP


def test_a_client_that_reports_nothing_is_judged_by_what_went_out() -> None:
    (gap,) = speech_gaps(reply((50, 0.3)), RATE, [VoicedClause(0.0, 9.0, 9.5)], lambda pts: None)
    assert gap.duration == pytest.approx(0.3)


def test_what_never_came_is_known_by_the_clients_word() -> None:
    frames = reply()
    (gap,) = speech_gaps(frames, RATE, [], played(), concealed=[(10.8, 10.88)])
    assert (gap.at, gap.duration, gap.cause) == (10.8, pytest.approx(0.08), Cause.NETWORK)
    assert speech_gaps(frames, RATE, [], played(), concealed=[(10.8, 10.83)]) == [], "shorter than 40 ms"
    assert speech_gaps(frames, RATE, [], played(), concealed=[(12.5, 12.7)]) == [], "after the reply"


def test_a_gap_that_was_also_concealed_is_one() -> None:
    frames = reply((50, 0.3))
    clauses = [VoicedClause(0.0, 9.0, 9.5)]
    (gap,) = speech_gaps(frames, RATE, clauses, played(), concealed=[(11.2, 11.4)])
    assert gap.cause is Cause.TTS


def test_a_packet_that_came_late_and_the_hole_behind_it_are_one_gap() -> None:
    # The encoder took 200 ms for one frame; the track skipped what was due meanwhile.
    frames = reply((51, 0.2))
    frames[50].sent_at = frames[50].made_at + 0.2
    in_time, late = played(), played(jumps={frames[50].pts: 0.16})

    def heard_at(pts: int) -> float | None:
        return late(pts) if pts == frames[50].pts else in_time(pts)

    (gap,) = speech_gaps(frames, RATE, [VoicedClause(0.0, 9.0, 9.5)], heard_at)
    assert gap.duration == pytest.approx(0.22)
    assert gap.cause is Cause.ENCODE


def test_small_silences_beside_each_other_are_jitter() -> None:
    frames = reply((50, 0.03), (51, 0.03), (52, 0.03))
    assert speech_gaps(frames, RATE, [], played()) == []


def test_a_frame_that_was_made_late_is_the_loops() -> None:
    frames = reply()
    for frame in frames[50:]:
        frame.made_at += 0.1
        frame.sent_at = frame.made_at + 0.001
    (gap,) = speech_gaps(frames, RATE, [], played(jumps={frames[50].pts: 0.06}))
    assert gap.cause is Cause.LOOP
