"""Is what was heard the avatar's own voice?"""
from collections.abc import Sequence


def is_own_speech(transcript: str, spoken: Sequence[str]) -> bool:
    return False
