"""Where echo comes from: a client's loudspeaker, the room around it, its microphone, and Opus both ways."""

import functools
from dataclasses import dataclass
from fractions import Fraction

import av
import numpy as np
import numpy.typing as npt
import soxr

from pipeline.events import WIRE_RATE, Pcm

_SOUND_SPEED = 343.0
_LEVEL_FRAME = WIRE_RATE // 50
_ACTIVE_DB = 35
"""Frames this far below the loudest are pauses; levels are those of speech, not of its pauses."""

Position = tuple[float, float, float]
Signal = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Room:
    """A box whose walls absorb alike. Lengths in metres, from one corner."""

    size: Position
    rt60: float
    """Seconds until sound has died away by 60 dB."""
    loudspeaker: Position
    microphone: Position

    @functools.cached_property
    def response(self) -> Signal:
        """Impulse response at WIRE_RATE by the image-source method (Allen and Berkley, 1979)."""
        size = np.array(self.size)
        volume = size.prod()
        surface = 2 * (size[0] * size[1] + size[1] * size[2] + size[0] * size[2])
        # Eyring's formula, for the reflection of a wall.
        reflection = np.exp(-0.5 * 0.161 * volume / (surface * self.rt60))
        reach = self.rt60 * _SOUND_SPEED
        orders = np.ceil(reach / (2 * size)).astype(int)
        n = np.stack(np.meshgrid(*(np.arange(-o, o + 1) for o in orders), indexing="ij"), -1).reshape(-1, 3)
        taps = np.zeros(round(self.rt60 * WIRE_RATE) + 1)
        for mirrored in np.ndindex(2, 2, 2):
            p = np.array(mirrored)
            image = (1 - 2 * p) * np.array(self.loudspeaker) + 2 * n * size
            distance = np.linalg.norm(image - np.array(self.microphone), axis=1)
            bounces = np.abs(n - p).sum(axis=1) + np.abs(n).sum(axis=1)
            index = np.round(distance / _SOUND_SPEED * WIRE_RATE).astype(int)
            near = index < len(taps)
            np.add.at(taps, index[near], reflection ** bounces[near] / distance[near])
        return np.asarray(taps / np.sqrt((taps**2).sum()))


OFFICE = Room((3.6, 3.0, 2.6), 0.3, (1.5, 1.2, 0.8), (1.7, 1.35, 0.8))
"""A small office with a laptop on the desk."""
LIVING_ROOM = Room((6.2, 4.5, 2.7), 0.5, (1.0, 2.0, 0.9), (2.6, 2.4, 0.7))
"""A living room whose loudspeaker stands well away from the microphone."""


def through_opus(pcm: Pcm, bit_rate: int = 32_000) -> Pcm:
    """Mono audio encoded and decoded as a WebRTC client does it; the codec's own delay of 6.5 ms is kept."""
    encoder = av.CodecContext.create("libopus", "w")
    encoder.sample_rate = WIRE_RATE
    encoder.layout = "mono"
    encoder.format = "s16"
    encoder.bit_rate = bit_rate
    encoder.options = {"application": "voip"}
    decoder = av.CodecContext.create("libopus", "r")
    decoder.sample_rate = WIRE_RATE
    decoder.layout = "mono"
    pieces = []
    for index in range(len(pcm) // _LEVEL_FRAME):
        frame = av.AudioFrame.from_ndarray(
            pcm[None, index * _LEVEL_FRAME : (index + 1) * _LEVEL_FRAME], format="s16", layout="mono"
        )
        frame.sample_rate = WIRE_RATE
        frame.pts = index * _LEVEL_FRAME
        frame.time_base = Fraction(1, WIRE_RATE)
        for packet in encoder.encode(frame):
            pieces += [
                decoded.to_ndarray().reshape(-1) for decoded in decoder.decode(av.Packet(bytes(packet)))
            ]
    decoded = np.concatenate(pieces)
    if decoded.dtype != np.int16:
        decoded = np.clip(decoded * 32768, -32768, 32767).astype(np.int16)
    return np.pad(decoded, (0, max(0, len(pcm) - len(decoded))))[: len(pcm)]


def level(signal: npt.NDArray[np.generic]) -> float:
    """RMS of the frames that hold speech."""
    frames = np.asarray(signal, np.float64)[: len(signal) // _LEVEL_FRAME * _LEVEL_FRAME]
    power = (frames.reshape(-1, _LEVEL_FRAME) ** 2).mean(axis=1)
    return float(np.sqrt(power[power > power.max() * 10 ** (-_ACTIVE_DB / 10)].mean()))


def echo(reply: Pcm, room: Room, *, delay: float, drift_ppm: float = 0.0) -> Signal:
    """What a microphone picks up of a reply, as loud as any: `delay` seconds late, on its own clock."""
    heard = through_opus(reply, 96_000) / 32768
    # A small loudspeaker gives no bass and bends loud sound: 2 % second and some third harmonic.
    spectrum = np.fft.rfft(heard)
    frequency = np.fft.rfftfreq(len(heard), 1 / WIRE_RATE)
    heard = np.fft.irfft(spectrum / (1 + (150 / np.maximum(frequency, 1)) ** 4), len(heard))
    heard = np.tanh(1.5 * (heard + 0.04 * heard**2)) / 1.5
    response = room.response
    size = len(heard) + len(response)
    wet = np.fft.irfft(np.fft.rfft(heard, size) * np.fft.rfft(response, size), size)
    drifted = soxr.resample(wet, WIRE_RATE, WIRE_RATE * (1 + drift_ppm * 1e-6))
    late = np.concatenate((np.zeros(round(delay * WIRE_RATE)), drifted))
    return np.pad(late, (0, max(0, len(reply) - len(late))))[: len(reply)]


def microphone(echoed: Signal, user: Pcm | None = None, *, echo_db: float, user_level: float = 1600.0) -> Pcm:
    """A client's uplink as it arrives here: echo `echo_db` above a user's speech, that speech, some noise.

    The echo is as loud whether the user speaks or not. `user_level` is the RMS of the user's speech.
    """
    sound = echoed * (user_level * 10 ** (echo_db / 20) / level(echoed))
    sound = sound + np.random.default_rng(1).standard_normal(len(sound)) * 8
    if user is not None and user.any():
        sound = sound + user * (user_level / level(user))
    return through_opus(np.clip(sound, -32768, 32767).astype(np.int16))
