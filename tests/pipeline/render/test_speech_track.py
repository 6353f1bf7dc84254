from dataclasses import replace

import pytest

from pipeline.events import SpeechChunk
from pipeline.render.speech_track import SpeechTrack
from tests.pipeline.render.speech import RATE, SAMPLE, chunk, phonemes


def cut(whole: SpeechChunk, at: int) -> list[tuple[SpeechChunk, float]]:
    """A chunk in two, before its phoneme number `at`, and where each begins."""
    start = whole.phonemes[at].start
    sample = round(start * RATE)
    later = [replace(one, start=one.start - start, end=one.end - start) for one in whole.phonemes[at:]]
    return [
        (replace(whole, pcm=whole.pcm[:sample], phonemes=whole.phonemes[:at]), 0.0),
        (replace(whole, pcm=whole.pcm[sample:], phonemes=later), start),
    ]


@pytest.mark.parametrize("after", [False, True])
def test_the_mouth_does_not_see_where_a_clause_was_cut(after: bool) -> None:
    """At every gap between words, whichever piece the gap is in."""
    whole = chunk(phonemes(SAMPLE))
    known = SpeechTrack()
    known.cue(whole, 0.0)
    gaps = [at for at, one in enumerate(whole.phonemes) if one.symbol == " "]
    assert len(gaps) > 10
    for gap in gaps:
        track = SpeechTrack()
        for piece, at in cut(whole, gap + after):
            track.cue(piece, at)
        assert [span.viseme for span in track.spans] == [span.viseme for span in known.spans]
        for span, other in zip(track.spans, known.spans, strict=True):
            assert (span.start, span.end) == pytest.approx((other.start, other.end))
        for position in (step / 20 for step in range(120)):
            assert track.emphasis(position) == pytest.approx(known.emphasis(position), abs=0.1)


def test_an_unknown_phoneme_in_a_cut_clause_is_counted_once() -> None:
    whole = chunk(phonemes("p60 ☃50 ·60 b50 ☃50 ɑ60"))
    track = SpeechTrack()
    for piece, at in cut(whole, 2):
        track.cue(piece, at)
    assert track.unknown["☃"] == 2


def test_a_clause_after_a_pause_is_its_own() -> None:
    track = SpeechTrack()
    word = chunk(phonemes("m60 ɑ60 ·50"))
    track.cue(word, 0.0)
    before = track.spans
    track.cue(word, 0.5)
    assert track.spans[: len(before)] == before
