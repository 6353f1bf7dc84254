"""Which codecs an answer names."""

from typing import Any

from aiortc import RTCRtpTransceiver

from pipeline.webrtc.tuning.internals import CODECS, read, replace


def prefer_codec(transceiver: RTCRtpTransceiver, mime_type: str, *, only: bool = False) -> None:
    """Put a codec first in the next answer, or name no other, where the offer has it.

    After the offer was applied. Raises IncompatibleLibraryError.
    """
    codecs: Any = read(transceiver, CODECS)
    wanted = [codec for codec in codecs if codec.mimeType.lower() == mime_type.lower()]
    if wanted:
        replace(transceiver, CODECS, wanted if only else [*wanted, *(c for c in codecs if c not in wanted)])
