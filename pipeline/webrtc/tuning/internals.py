"""The private attributes of aiortc and aioice that are read or replaced here, and the versions with them."""

from functools import cache
from importlib.metadata import version

from pipeline.errors import IncompatibleLibraryError

AIORTC, AIOICE = "1.16", "0.13"
"""The minor versions whose source these attributes were read in."""

ENCODER = "_RTCRtpSender__encoder"
"""Made at the first frame, unless there is one."""
RTP_TIMESTAMP = "_RTCRtpSender__rtp_timestamp"
"""Of the last packet sent; set before the next frame is asked for."""
SEND_RTP = "_send_rtp"
"""Of a DTLS transport: every RTP and RTCP packet of ours goes through it."""
SSRC = "_ssrc"
"""Of a sender."""
RECEIVE_BUFFER = "_RTCRtpReceiver__jitter_buffer"
"""Its `add(packet)` gets every packet of a known payload type and returns (ask for a key frame, a
complete frame or None)."""
RECEIVING = "_enabled"
"""Of a receiver; False drops every packet."""
CODECS = "_codecs"
"""Of a transceiver: what the next answer names, the one to send with first. `setCodecPreferences` comes
too late: they are settled while the offer is applied, and that makes the transceiver."""
ICE_STARTED = "_RTCIceTransport__start"
"""An event, set when the checks are over; None before they begin."""
ICE_CONNECTION = "_connection"
"""Of an ICE transport: aioice's end of it."""
TARGET_BITRATES = {"VP8": "_Vp8Encoder__target_bitrate", "H264": "_H264Encoder__target_bitrate"}
"""Of a video encoder, bits a second; the public setter has limits of its own."""


@cache
def check_versions() -> None:
    """Raises IncompatibleLibraryError unless aiortc and aioice are those that this was written for."""
    for library, expected in (("aiortc", AIORTC), ("aioice", AIOICE)):
        installed = version(library)
        if not installed.startswith(f"{expected}."):
            raise IncompatibleLibraryError(
                f"{library} {installed} is installed; pipeline/webrtc/tuning was written for {expected} and "
                f'changes its insides: pip install "{library}=={expected}.*"'
            )


def read(owner: object, name: str) -> object:
    """A private attribute. Raises IncompatibleLibraryError when there is none of this name."""
    if not hasattr(owner, name):
        raise IncompatibleLibraryError(
            f"aiortc {version('aiortc')}: {type(owner).__name__} has no {name}; "
            f"pipeline/webrtc/tuning was written for {AIORTC}"
        )
    found: object = getattr(owner, name)
    return found


def replace(owner: object, name: str, value: object) -> None:
    """Set a private attribute that exists. Raises IncompatibleLibraryError when it does not."""
    read(owner, name)
    setattr(owner, name, value)
