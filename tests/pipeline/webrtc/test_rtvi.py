import json
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pipeline.errors import BadMessageError
from pipeline.webrtc import rtvi


def custom(name: str, data: object = None) -> str:
    return envelope("client-message", {"t": name, "d": data})


def envelope(kind: object, data: object = None, **more: object) -> str:
    return json.dumps({"id": "a1", "label": "rtvi-ai", "type": kind, "data": data, **more})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (envelope("client-ready", {"version": "2.1.0"}), rtvi.ClientReady("a1", "2.1.0")),
        (envelope("client-ready"), rtvi.ClientReady("a1", "")),
        (envelope("send-text", {"content": "hi", "options": {}}), rtvi.SendText("a1", "hi")),
        (
            envelope("client-message", {"t": "somebody.elses", "d": 1}),
            rtvi.ClientMessage("a1", "somebody.elses", 1),
        ),
        (custom("visavis.playout", {"rtp_timestamp": 0}), rtvi.PlayoutReport(0)),
        (custom("visavis.playout", {"rtp_timestamp": 2**32 - 1}), rtvi.PlayoutReport(2**32 - 1)),
        (custom("visavis.push_to_talk", {"pressed": True}), rtvi.PushToTalk(True)),
        (custom("visavis.push_to_talk", {"pressed": False}), rtvi.PushToTalk(False)),
        (envelope("client-message", {"t": "visavis.interrupt"}), rtvi.Interrupt()),
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
        (custom("visavis.playout"), "visavis.playout with null; expected a d.rtp_timestamp of 0 to 4,294"),
        (custom("visavis.playout", {"rtp_timestamp": -1}), "expected a d.rtp_timestamp"),
        (custom("visavis.playout", {"rtp_timestamp": 2**32}), "expected a d.rtp_timestamp"),
        (custom("visavis.playout", {"rtp_timestamp": True}), "expected a d.rtp_timestamp"),
        (custom("visavis.playout", {"rtp_timestamp": 1.5}), "expected a d.rtp_timestamp"),
        (custom("visavis.clock", {"asked": 10**400}), "visavis.clock with .* expected a d.asked in seconds"),
        (custom("visavis.speech_end", {"at": -(10**400)}), "expected a d.at in seconds"),
        (custom("visavis.push_to_talk", {"pressed": 1}), "visavis.push_to_talk with .* expected a d.pressed"),
        (custom("visavis.push_to_talk", {}), "expected a d.pressed of true or false"),
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


CUSTOM = Draft202012Validator(
    {
        "$ref": "#/$defs/clientCustomMessage",
        "$defs": json.loads((files("web") / "messages.schema.json").read_text())["$defs"],
    }
)


def test_a_stretch_that_ends_before_it_begins_is_refused() -> None:
    """Which a JSON Schema cannot say."""
    with pytest.raises(BadMessageError, match="concealed"):
        rtvi.parse(custom("visavis.observed", {"concealed": [[7.6, 7.5]]}))


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        (custom("visavis.playout", {"rtp_timestamp": 7}), True),
        (custom("visavis.playout", {"rtp_timestamp": 2**32}), False),
        (custom("visavis.playout"), False),
        (custom("visavis.push_to_talk", {"pressed": True}), True),
        (custom("visavis.push_to_talk", {"pressed": 1}), False),
        (custom("visavis.interrupt"), True),
        (custom("visavis.clock", {"asked": 7.5, "before": None}), True),
        (custom("visavis.clock", {"asked": 7.5, "before": [7.0, 1.0, 1.1, 7.2]}), True),
        (custom("visavis.clock", {"asked": 7.5, "before": [7.0, 1.0]}), False),
        (custom("visavis.clock", {"before": None}), False),
        (custom("visavis.observed", {"sound": [[960, 7.5]], "pictures": [], "hidden": True}), True),
        (custom("visavis.observed", {"lacks": ["sound", "what a later client lacks"]}), True),
        (custom("visavis.observed", {"sound": [[960]]}), False),
        (custom("visavis.observed", {"sound": [[-1, 7.5]]}), False),
        (custom("visavis.observed", {"lacks": "sound"}), False),
        (custom("visavis.observed", {"concealed": [[7.5, 7.6]]}), True),
        (custom("visavis.observed", {"concealed": 7.5}), False),
        (custom("visavis.observed", {"audible": [7.5, 7]}), True),
        (custom("visavis.observed", {"audible": [[7.5]]}), False),
        (custom("visavis.observed", {"audible": 7.5}), False),
        (custom("visavis.observed", ["sound"]), False),
        (custom("visavis.speech_end", {"at": 7.5}), True),
        (custom("visavis.speech_end", {}), False),
        (custom("somebody.elses", [1, 2]), True),
    ],
)
def test_the_schema_allows_what_is_understood(text: str, valid: bool) -> None:
    assert CUSTOM.is_valid(json.loads(text)) is valid
    try:
        rtvi.parse(text)
    except BadMessageError:
        assert not valid
    else:
        assert valid


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
