"""What the client is told of the conversation, in RTVI's words and our own."""

from collections.abc import Callable, Mapping
from typing import Any

from pipeline.clock import wall_time
from pipeline.webrtc import rtvi
from pipeline.webrtc.reply import HeardWord


class Announcer:
    """Turns what happens in a session into messages; `send` puts one on the data channel.

    A *segment* is a clause of the reply as it is voiced; its words are told as they go out, so
    captions keep step with the sound.
    """

    def __init__(self, send: Callable[[str], None], name: str, version: str) -> None:
        self._send = send
        self._about = {"library": "visavis", "library_version": version, "name": name}
        self._state = {"user": "silent", "agent": "idle", "mood": "idle"}
        self._segments: list[tuple[float, str]] = []
        self._spoken: list[str] = []
        self._current = 0

    def ready(self, identifier: str) -> None:
        data = {"version": rtvi.VERSION, "about": self._about}
        self._send(rtvi.message("bot-ready", data, identifier=identifier or None))
        self._send(rtvi.server_message("visavis.state", **self._state))

    def state(self, **state: str) -> None:
        """user, agent and mood, when one of them changed."""
        if state == self._state:
            return
        before, self._state = self._state, state
        if before["user"] == "silent" and state["user"] == "speaking":
            self._send(rtvi.message("user-started-speaking"))
        if before["user"] != "silent" and state["user"] == "silent":
            self._send(rtvi.message("user-stopped-speaking"))
        self._send(rtvi.server_message("visavis.state", **state))

    def transcript(self, text: str, *, final: bool) -> None:
        data = {"text": text, "final": final, "timestamp": wall_time(), "user_id": "user"}
        self._send(rtvi.message("user-transcription", data))

    # ── the reply ──────────────────────────────────────────────────────────────────────────────

    def reply_begins(self) -> None:
        """A turn was committed; what follows belongs to its reply."""
        self._segments, self._spoken, self._current = [], [], 0
        self._send(rtvi.message("bot-llm-started"))

    def reopened(self) -> None:
        """The turn is not over after all: what was said of it last is withdrawn with its reply."""
        self._send(rtvi.server_message("visavis.reopened"))

    def text(self, delta: str) -> None:
        self._send(rtvi.message("bot-llm-text", {"text": delta}))

    def segment(self, text: str, at: float) -> None:
        """A clause that will be heard from audio position `at` on."""
        if not self._segments:
            self._send(rtvi.message("bot-tts-started"))
        self._segments.append((at, text))
        self._output(len(self._segments) - 1, "new", "", text)

    def composed(self) -> None:
        """Nothing further will be written or voiced."""
        self._send(rtvi.message("bot-llm-stopped"))
        self._send(rtvi.message("bot-tts-stopped"))

    def started_speaking(self) -> None:
        self._send(rtvi.message("bot-started-speaking"))

    def word(self, word: HeardWord) -> None:
        """A word's first sample went out."""
        while self._current + 1 < len(self._segments) and word.start >= self._segments[self._current + 1][0]:
            self._finish_segment()
        self._send(rtvi.message("bot-tts-text", {"text": word.text}))
        self._spoken.append(word.text)
        remaining = self._segments[self._current][1].split()[len(self._spoken) :]
        self._output(self._current, "in-progress", " ".join(self._spoken), " ".join(remaining))

    def stopped_speaking(self, *, interrupted: bool) -> None:
        if self._segments and not interrupted:
            self._finish_segment()
        self._send(rtvi.message("bot-stopped-speaking"))

    def turn(self, record: Mapping[str, Any]) -> None:
        self._send(rtvi.server_message("visavis.turn", record=record))

    def measured(self, record: Mapping[str, Any]) -> None:
        """The same turn's record again, with what the client reported of it."""
        self._send(rtvi.server_message("visavis.measured", record=record))

    def failed(self, text: str, *, code: str, fatal: bool = False) -> None:
        self._send(rtvi.error(text, code=code, fatal=fatal))

    def left(self) -> None:
        self._send(rtvi.peer_left())

    def _finish_segment(self) -> None:
        self._output(self._current, "completed", self._segments[self._current][1], "")
        self._current += 1
        self._spoken = []

    def _output(self, index: int, status: str, accumulated: str, remaining: str) -> None:
        data = {
            "text": self._segments[index][1],
            "aggregated_by": "sentence",
            "segment_id": index,
            "will_be_spoken": True,
            "spoken_status": status,
            "spoken_progress": {"accumulated_text": accumulated, "remaining_text": remaining},
        }
        self._send(rtvi.message("bot-output", data))
