import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadMessageError
from pipeline.webrtc import rtvi


def envelope(kind: object, data: object = None, **more: object) -> str:
    return json.dumps({"id": "a1", "label": "rtvi-ai", "type": kind, "data": data, **more})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (envelope("client-ready", {"version": "2.1.0"}), rtvi.ClientReady("a1", "2.1.0")),
        (envelope("client-ready"), rtvi.ClientReady("a1", "")),
        (envelope("send-text", {"content": "hi", "options": {}}), rtvi.SendText("a1", "hi")),
        (
            envelope("client-message", {"t": "visavis.clock", "d": 1}),
            rtvi.ClientMessage("a1", "visavis.clock", 1),
        ),
        (envelope("disconnect-bot", {}), rtvi.DisconnectBot()),
        (envelope("dtmf", {"buttons": ["1"]}), rtvi.Unknown("a1", "dtmf")),
        ("ping: 1764441332000", rtvi.Ping()),
        (
            '{"type":"signalling","message":{"type":"trackStatus","receiver_index":0,"enabled":false}}',
            rtvi.TrackStatus(0, False),
        ),
    ],
)
def test_what_clients_send(text: str, expected: rtvi.Incoming) -> None:
    assert rtvi.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("hello", "not JSON"),
        ("[" * 60_000, "nested too deeply"),
        ("[1]", "expected an object"),
        ("{}", 'expected "rtvi-ai"'),
        (b"\x00\x01", "binary"),
        ("x" * 1_000_000, "1,000,000 bytes; at most 65,536"),
        (envelope("send-text", {"text": "hi"}), "data.content"),
        (envelope("client-message", None), "data.t"),
        (envelope(7), "expected a string"),
        ('{"type":"signalling"}', "without a type"),
    ],
)
def test_what_is_refused_says_what_was_expected(text: str | bytes, complaint: str) -> None:
    with pytest.raises(BadMessageError, match=complaint):
        rtvi.parse(text)


@pytest.mark.parametrize("depth", range(900, 1000, 3))
def test_nesting_of_any_depth_is_refused(depth: int) -> None:
    text = '{"label": "rtvi-ai", "type": ' + "[" * depth + "]" * depth + "}"
    with pytest.raises(BadMessageError):
        rtvi.parse(text)


def test_half_a_surrogate_pair_becomes_a_question_mark() -> None:
    text = '{"id":"\\ud83d","label":"rtvi-ai","type":"send-text","data":{"content":"hi \\ud83d"}}'
    assert rtvi.parse(text) == rtvi.SendText("?", "hi ?")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON, JSON)
def test_any_json_is_read_or_refused(kind: object, data: object, extra: object) -> None:
    for message in (envelope(kind, data), json.dumps(extra), envelope("client-message", data)):
        try:
            rtvi.parse(message)
        except BadMessageError:
            pass


def test_what_we_send_is_an_envelope() -> None:
    sent = json.loads(rtvi.server_message("visavis.state", user="silent"))
    assert sent["label"] == "rtvi-ai"
    assert sent["type"] == "server-message"
    assert sent["data"] == {"type": "visavis.state", "user": "silent"}
    assert sent["id"]
