import pytest

from pipeline.llm.sse import MAX_EVENT, EventDecoder, EventTooLongError

STREAM = (
    ": comment\n\n"
    'data: {"a": "grüße 👋"}\n\n'
    ":\n\n"
    "event: message\nid: 7\nretry: 10\ndata:no space\n\n"
    "data: first\ndata: second\n\n"
    "data:  kept space\n\n"
    "data: [DONE]\n\n"
)
EVENTS = ['{"a": "grüße 👋"}', "no space", "first\nsecond", " kept space", "[DONE]"]


def decode(*pieces: bytes) -> list[str]:
    decoder = EventDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_every_cut_gives_the_same_events(line_end: str) -> None:
    stream = STREAM.replace("\n", line_end).encode()
    assert decode(stream + b"\n") == EVENTS
    for at in range(len(stream) + 1):
        assert decode(stream[:at], stream[at:], b"\n") == EVENTS, at


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_byte_by_byte(line_end: str) -> None:
    stream = STREAM.replace("\n", line_end).encode() + b"\n"
    assert decode(*(stream[at : at + 1] for at in range(len(stream)))) == EVENTS


def test_an_event_counts_only_when_its_blank_line_came() -> None:
    decoder = EventDecoder()
    assert decoder.feed(b"data: half\n") == []
    assert decoder.feed(b"\n") == ["half"]


@pytest.mark.parametrize("piece", [b"x" * 1000, b"data: " + b"x" * 1000 + b"\n"])
def test_an_endless_event_is_refused(piece: bytes) -> None:
    with pytest.raises(EventTooLongError):
        decode(*[piece] * (MAX_EVENT // 1000 + 2))


def test_what_is_not_utf8_is_refused() -> None:
    with pytest.raises(UnicodeDecodeError):
        decode(b"data: \xff\n\n")
