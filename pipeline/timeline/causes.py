"""Who a listener has to thank for a gap in speech or a picture that stood still."""

from collections.abc import Sequence
from enum import StrEnum


class Cause(StrEnum):
    LLM = "llm"
    TTS = "tts"
    RENDER = "render"
    ENCODE = "encode"
    LOOP = "loop"
    NETWORK = "network"
    PAINT = "paint"
    UNKNOWN = "unknown"


def overlap(spans: Sequence[tuple[float, float]], start: float, end: float) -> float:
    """Seconds between two moments that lie in one of the spans."""
    return sum(max(0.0, min(finish, end) - max(begin, start)) for begin, finish in spans)
