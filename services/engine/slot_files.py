"""Files that llama.cpp writes a slot's state to and reads it from, without a file system.

It wants a folder and a name. /proc/self/fd is such a folder, and a memory file's descriptor such a name:
what is in it is nowhere on disk, nobody else can open it, and it is gone with the process, however that
ends. So there is nothing to wipe at start, and nothing survives `kill -9`.
"""

import hashlib
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

FOLDER = "/proc/self/fd/"
"""What llama.cpp is told to save in."""

CHUNK = 1 << 20
"""Bytes that are sent at a time."""


@dataclass(frozen=True, slots=True)
class SlotFile:
    """One slot's state, or the place for it."""

    descriptor: int

    @property
    def name(self) -> str:
        """For llama.cpp."""
        return str(self.descriptor)

    @property
    def size(self) -> int:
        """Bytes."""
        return os.fstat(self.descriptor).st_size

    def append(self, piece: bytes) -> None:
        view = memoryview(piece)
        while view:
            view = view[os.write(self.descriptor, view) :]

    def digest(self) -> str:
        """SHA-256, hexadecimal."""
        if self.size == 0:
            return hashlib.sha256().hexdigest()
        with mmap.mmap(self.descriptor, 0, prot=mmap.PROT_READ) as content:
            return hashlib.sha256(content).hexdigest()

    def chunks(self) -> Iterator[bytes]:
        for at in range(0, self.size, CHUNK):
            yield os.pread(self.descriptor, CHUNK, at)


@contextmanager
def slot_file() -> Iterator[SlotFile]:
    """An empty one; its memory is given back at the end."""
    descriptor = os.memfd_create("slot", os.MFD_CLOEXEC)
    try:
        yield SlotFile(descriptor)
    finally:
        os.close(descriptor)
