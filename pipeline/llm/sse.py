"""Server-sent events, as far as chat endpoints use them (WHATWG HTML, 9.2.6 Interpreting an event stream)."""

MAX_EVENT = 1 << 20
"""Bytes. An event of a chat stream has a few hundred."""


class EventTooLongError(ValueError):
    """The stream went on past MAX_EVENT without an end of event."""


class EventDecoder:
    """Bytes as they arrive, in pieces of any size → the data of each complete event.

    Comments (keep-alives) and the fields event, id and retry are skipped.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[str] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[str]:
        """Data of the events that `piece` completes. Raises EventTooLongError, UnicodeDecodeError."""
        events: list[str] = []
        *lines, self._rest = _split(self._rest + piece)
        for line in lines:
            if line:
                self._take(line)
            elif self._data:
                events.append("\n".join(self._data))
                self._data.clear()
                self._size = 0
        if self._size + len(self._rest) > MAX_EVENT:
            raise EventTooLongError(f"an event of more than {MAX_EVENT} bytes")
        return events

    def _take(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        if field == b"data":
            self._size += len(value)
            self._data.append(value.removeprefix(b" ").decode("utf-8"))


def _split(text: bytes) -> list[bytes]:
    # A carriage return at the very end may be half of a line end: it stays for the next piece.
    held = b"\r" if text.endswith(b"\r") else b""
    lines = text.removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    lines[-1] += held
    return lines
