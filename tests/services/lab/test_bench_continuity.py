import asyncio
from pathlib import Path

import pytest

from pipeline.audible import Run
from services.lab.bench.continuity import freezes, underruns
from services.lab.bench.sessions import holes
from services.lab.exchange import Exchange
from services.lab.microphone import Utterance
from services.lab.speech_file import SpeechFile
from services.lab.studio.speech import Spoken
from tests.services.lab.heard import packets, tone, without


def test_packets_on_time_have_no_holes() -> None:
    assert underruns(packets(tone(2.0)), 100.0, 102.0) == []


def test_what_the_buffer_covers_is_not_heard() -> None:
    assert underruns(packets(tone(2.0), late={30: 0.05, 31: 0.03}), 100.0, 102.0) == []


def test_a_late_burst_is_one_hole() -> None:
    late = {k: 0.2 - (k - 30) * 0.02 for k in range(30, 40)}
    (hole,) = underruns(packets(tone(2.0), late=late), 100.0, 102.0)
    assert hole.ms == pytest.approx(160, abs=1), "200 ms less the buffer of 40"
    assert hole.at == pytest.approx(100.64, abs=0.001)


def test_lost_packets_are_a_hole() -> None:
    (hole,) = underruns(without(packets(tone(2.0)), 30, 31, 32), 100.0, 102.0)
    assert hole.ms == pytest.approx(60, abs=1)
    assert underruns(without(packets(tone(2.0)), 30), 100.0, 102.0) == [], "20 ms are none"


def test_only_the_time_of_the_reply_is_judged() -> None:
    heard = packets(tone(2.0), late={80: 0.3})
    assert underruns(heard, 100.0, 101.0) == []
    assert underruns([], 0.0, 1.0) == []


def test_a_freeze_by_the_w3cs_rule() -> None:
    arrivals = [k * 0.04 for k in range(50)]
    later = [arrivals[-1] + 0.30 + k * 0.04 for k in range(50)]
    (hole,) = freezes(arrivals + later, later[-1] + 0.04)
    assert hole.ms == pytest.approx(300, abs=1)
    short = [arrivals[-1] + 0.18 + k * 0.04 for k in range(50)]
    assert freezes(arrivals + short, short[-1] + 0.04) == [], "40 + 150 ms is the limit"


def test_a_freeze_is_that_of_the_turn_it_fell_into() -> None:
    """Pictures go on coming after a turn is kept."""
    file = SpeechFile(Path("q.wav"), tone(0.1), Run(0, 4800))
    utterance = Utterance(file, asyncio.Event(), onset=10.0, end=11.0)
    done = Exchange(Spoken(file, "", "human", "v", None), utterance, [], False)
    shown = [k * 0.04 for k in range(400)]
    pictures = [(at if at < 14.0 else at + 0.5, 0) for at in shown]
    assert holes(done, pictures, 13.0)["freezes_ms"] == []
    assert holes(done, pictures, 15.0)["freezes_ms"] == [pytest.approx(540, abs=1)]


def test_one_still_open_at_the_end_counts() -> None:
    arrivals = [k * 0.04 for k in range(50)]
    (hole,) = freezes(arrivals, arrivals[-1] + 1.0)
    assert hole.ms == pytest.approx(1000, abs=1)
    assert freezes([], 1.0) == []
