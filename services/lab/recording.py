"""A call as files: what was heard, what was seen, and its captions."""

import wave
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av import AudioFrame, VideoFrame

from pipeline.events import WIRE_RATE, Pcm
from services.lab.arrivals import Heard, PictureTap
from services.lab.synthetic_user import Told

_VIDEO_RATE = 90_000
_VIDEO_TICK = Fraction(1, _VIDEO_RATE)


@dataclass(frozen=True, slots=True)
class Cue:
    """A caption, in seconds of the recording."""

    start: float
    end: float
    text: str


def sound(heard: Sequence[Heard], start: float, end: float) -> Pcm:
    """What was heard between two moments, as one stretch: gaps are silence.

    Packets lie where their RTP time stamps say, anchored at the arrival of the quickest one, so that
    jitter of the way here does not tear the sound.
    """
    recording = np.zeros(max(0, round((end - start) * WIRE_RATE)), np.int16)
    if not heard:
        return recording
    anchor = min(packet.at - _seconds(packet, heard[0]) for packet in heard)
    for packet in heard:
        position = round((anchor + _seconds(packet, heard[0]) - start) * WIRE_RATE)
        first, last = max(0, position), min(len(recording), position + len(packet.pcm))
        if first < last:
            recording[first:last] = packet.pcm[first - position : last - position]
    return recording


def write_wav(path: Path, pcm: Pcm) -> None:
    """16-bit mono at WIRE_RATE."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(WIRE_RATE)
        file.writeframes(pcm.tobytes())


def write_mp4(path: Path, pcm: Pcm, pictures: PictureTap, start: float) -> None:
    """H.264 and AAC; pictures lie where their time stamps say, anchored as sound is. Takes a while."""
    with av.open(str(path), "w") as container:
        video = container.add_stream("libx264", rate=25, options={"crf": "20", "preset": "veryfast"})
        video.pix_fmt = "yuv420p"
        video.codec_context.time_base = _VIDEO_TICK
        audio = container.add_stream("aac", rate=WIRE_RATE, layout="mono")
        for index, frame in enumerate(decoded(pictures, start)):
            if index == 0:
                video.width, video.height = frame.width, frame.height
            container.mux(video.encode(frame))
        if pictures.kept:
            container.mux(video.encode(None))
        for index in range(0, len(pcm) - 1023, 1024):
            piece = AudioFrame.from_ndarray(pcm[index : index + 1024][None], format="s16", layout="mono")
            piece.sample_rate, piece.pts, piece.time_base = WIRE_RATE, index, Fraction(1, WIRE_RATE)
            container.mux(audio.encode(piece))
        container.mux(audio.encode(None))


def decoded(pictures: PictureTap, start: float) -> Iterator[VideoFrame]:
    """The kept pictures from `start` on; pts in 90 kHz from `start`, strictly rising."""
    if not pictures.kept:
        return
    decoder = av.CodecContext.create("vp8", "r")
    first = pictures.kept[0][0]
    anchor = min(at - _ticks(rtp, first) / _VIDEO_RATE for at, rtp in pictures.seen)
    newest = -1
    for rtp, data in pictures.kept:
        pts = round((anchor - start) * _VIDEO_RATE) + _ticks(rtp, first)
        for frame in decoder.decode(av.Packet(data)):
            if pts > newest and pts >= 0:
                frame.pts, frame.time_base = pts, _VIDEO_TICK
                newest = pts
                yield frame


def captions(told: Sequence[Told], start: float) -> list[Cue]:
    """A cue for each clause, from its first word to its end as it was spoken."""
    cues: list[Cue] = []
    open_clause: tuple[int, float, str] | None = None
    for message in told:
        if message.type == "bot-output" and message.data.get("spoken_status") == "in-progress":
            segment, text = message.data["segment_id"], message.data["text"]
            if open_clause is None or open_clause[0] != segment:
                if open_clause is not None:
                    cues.append(Cue(open_clause[1], message.at - start, open_clause[2]))
                open_clause = (segment, message.at - start, text)
        elif message.type == "bot-stopped-speaking" and open_clause is not None:
            cues.append(Cue(open_clause[1], message.at - start, open_clause[2]))
            open_clause = None
    return [cue for cue in cues if cue.start >= 0]


def write_vtt(path: Path, cues: Sequence[Cue]) -> None:
    """WebVTT."""
    lines = ["WEBVTT", ""]
    for cue in cues:
        lines += [f"{_stamp(cue.start)} --> {_stamp(max(cue.end, cue.start + 0.01))}", cue.text, ""]
    path.write_text("\n".join(lines), "utf-8")


def _seconds(packet: Heard, first: Heard) -> float:
    return _ticks(packet.rtp_timestamp, first.rtp_timestamp) / WIRE_RATE


def _ticks(later: int, earlier: int) -> int:
    """The signed distance of two 32-bit RTP time stamps."""
    return (later - earlier + 0x80000000) % 0x100000000 - 0x80000000


def _stamp(seconds: float) -> str:
    milliseconds = round(seconds * 1000)
    minutes, milliseconds = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{milliseconds // 1000:02d}.{milliseconds % 1000:03d}"
