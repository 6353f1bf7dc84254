"""Closing a connection so that nothing of it goes on, also one that is still coming about.

aiortc connects in a task that nobody owns and that does not notice being overtaken by `close`: ICE that
completes meanwhile leaves a consent task of aioice that never ends, and a handshake that does leaves senders
and receivers that were started after they had been stopped, each receiver with a thread.
"""

import asyncio
from typing import Any

from aiortc import RTCDtlsTransport, RTCPeerConnection

from pipeline.webrtc.tuning.internals import ICE_CONNECTION, ICE_STARTED, read


async def close(connection: RTCPeerConnection) -> None:
    """Close it and wait until what was under way has ended too. Raises IncompatibleLibraryError."""
    transceivers = connection.getTransceivers()
    messages: Any = connection.sctp
    if messages is not None and messages.transport is None:
        # Half of an offer was taken before it was refused: nothing was begun that `close` could end.
        for transceiver in transceivers:
            await transceiver.stop()
        return
    await connection.close()
    transports = {transceiver.receiver.transport for transceiver in transceivers}
    if connection.sctp is not None:
        transports.add(connection.sctp.transport)
    for transport in transports:
        await _end(transport)
    for transceiver in transceivers:
        await transceiver.stop()


async def _end(transport: RTCDtlsTransport) -> None:
    ice: Any = transport.transport
    started: Any = read(ice, ICE_STARTED)
    if started is None:
        return
    await started.wait()
    checks: Any = read(ice, ICE_CONNECTION)
    await checks.close()
    # On a closed ICE connection a handshake fails at once, or ends with what had already arrived.
    if transport.state == "connecting":
        over = asyncio.Event()
        transport.once("statechange", over.set)
        await over.wait()
