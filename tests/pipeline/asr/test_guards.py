import pytest

from pipeline.asr.guards import TranscriptGuards, compression_ratio, too_many_words, without_loop

CLEAR = {"no_speech_probability": 0.01, "mean_log_probability": -0.2, "compression_ratio": 0.9}


@pytest.mark.parametrize(
    ("text", "figures", "reason"),
    [
        ("Hello.", {}, None),
        ("...", {}, "no words"),
        ("Thank you.", {"no_speech_probability": 0.95}, "no-speech"),
        ("Who wrote it?", {"no_speech_probability": 0.73, "mean_log_probability": -0.87}, None),
        ("I'm here.", {"no_speech_probability": 0.73, "mean_log_probability": -1.4}, "log probability"),
        ("Thank you.", {"mean_log_probability": -1.6}, "log probability"),
        ("na " * 40, {"compression_ratio": 9.0}, "compression"),
    ],
)
def test_each_guard(text: str, figures: dict[str, float], reason: str | None) -> None:
    found = TranscriptGuards().reject(text, **{**CLEAR, **figures})
    assert (found is None) if reason is None else (reason in str(found))


def test_compression_ratio_tells_a_loop() -> None:
    assert compression_ratio("What is the capital of France?") < 1
    assert compression_ratio("yes " * 60) > 2.4
    assert compression_ratio("") == 0


def test_more_words_than_anybody_can_say() -> None:
    assert too_many_words("Yes, yes. Yes. Yes. Yes. Yes. Yes.", 0.9)
    assert not too_many_words("Yes, yes.", 0.5)
    assert not too_many_words("I would like to book a table for four people next Friday.", 3.0)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Call me tomorrow after work. Call me tomorrow after", "Call me tomorrow after work."),
        ("One two three. One two three. One two three. One", "One two three."),
        ("No, no, no, no, no, no.", "No, no, no, no, no, no."),
        ("The dog saw the dog.", "The dog saw the dog."),
        ("I think that I think a lot.", "I think that I think a lot."),
        ("", ""),
    ],
)
def test_a_loop_is_cut_where_it_begins_again(text: str, kept: str) -> None:
    assert without_loop(text) == kept
