"""The sessions of this process: how many there may be, and the scope they live in."""

import asyncio
import logging
import uuid
from collections.abc import Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

from pipeline.errors import BadOfferError, LanguageModelError, ServerFullError, VisavisError
from pipeline.session import Session
from pipeline.timeline.session_timeline import SessionTimeline
from pipeline.timeline.shortened import fitting
from pipeline.webrtc.peer import Candidate
from services.recordings import Recordings
from services.stack import Stack
from services.telemetry.telemetry import Telemetry

_log = logging.getLogger(__name__)

_CLOSE_SECONDS = 5.0


class Sessions:
    """Opens a session for an offer and forgets it when its call is over. `async with` it."""

    def __init__(self, stack: Stack, telemetry: Telemetry) -> None:
        self._stack = stack
        self._telemetry = telemetry
        self._recordings = Recordings(stack.config, stack.clock)
        self._limit = stack.config.server.max_sessions
        self._sessions: dict[str, Session] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hang up every call and wait until nothing of them is left."""
        for session in self._sessions.values():
            session.hang_up()
        if self._tasks:
            _, slow = await asyncio.wait(self._tasks, timeout=_CLOSE_SECONDS)
            for task in slow:
                task.cancel()
            if slow:
                await asyncio.wait(slow)
        self._recordings.close()

    def __len__(self) -> int:
        return len(self._tasks)

    def trouble(self) -> VisavisError | None:
        """Why no session can start now."""
        if (reason := self._stack.trouble()) is not None:
            return EngineDownError(reason)
        if len(self._tasks) >= self._limit:
            return ServerFullError(f"All {self._limit} places are taken. Please try again in a few minutes.")
        return None

    async def offer(self, sdp: str, pc_id: str | None, *, restart: bool) -> Mapping[str, str]:
        """Answer an offer: renegotiate the call `pc_id`, go on with it behind a new connection
        (`restart`), or open a new session.

        Raises BadOfferError, ServerFullError, EngineDownError, InternalError.
        """
        known = self._sessions.get(pc_id or "")
        if known is not None:
            answer = await (known.restart(sdp) if restart else known.peer.answer(sdp))
            return {"sdp": answer.sdp, "type": answer.type, "pc_id": known.session_id}
        if (trouble := self.trouble()) is not None:
            raise trouble
        answered: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._host(sdp, answered), name="session")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await answered

    async def candidate(self, pc_id: str, candidate: Candidate) -> None:
        """A candidate for a call. Raises BadOfferError for a call that is not, or no longer, there."""
        session = self._sessions.get(pc_id)
        if session is None:
            raise BadOfferError(f"there is no call {pc_id[:40]!r}; it may be over")
        await session.peer.add_candidate(candidate)

    async def _host(self, sdp: str, answered: asyncio.Future[Mapping[str, str]]) -> None:
        """One session from offer to end. Its failure is its own: the others go on."""
        session_id = uuid.uuid4().hex[:12]
        try:
            async with (
                self._stack.stages() as plain,
                self._recordings.of(session_id, plain) as (stages, connect),
            ):

                def measured(record: Mapping[str, Any]) -> None:
                    session.measured(fitting(record))
                    self._telemetry.turn(record)

                timeline = SessionTimeline(
                    self._stack.clock, self._stack.route, self._stack.loop_lag, measured
                )
                session = Session(
                    session_id, stages, self._stack.session_settings, self._stack.clock, timeline, connect
                )
                async with AsyncExitStack() as unanswered:
                    unanswered.push_async_callback(session.peer.close)
                    answer = await session.peer.answer(sdp)
                    unanswered.pop_all()
                self._sessions[session_id] = session
                if not answered.cancelled():
                    answered.set_result({"sdp": answer.sdp, "type": answer.type, "pc_id": session_id})
                _log.info("session %s begins; %d now", session_id, len(self._sessions))
                self._telemetry.session_began(session_id)
                try:
                    await session.run()
                finally:
                    self._telemetry.session_ended(session_id)
        except VisavisError as error:
            if answered.done():
                _log.warning("session %s ended: %s", session_id, error)
            elif isinstance(error, LanguageModelError):
                _log.warning("session %s cannot begin: %s", session_id, error)
                answered.set_exception(EngineDownError(error.told))
            else:
                answered.set_exception(error)
        except Exception:  # noqa: BLE001  a fault in one call must not end the others; it is told in full
            _log.exception("session %s ended by a fault of ours", session_id)
            if not answered.done():
                answered.set_exception(
                    InternalError("The call could not be set up. The server's log says why.")
                )
        finally:
            self._sessions.pop(session_id, None)
            if not answered.done():
                answered.cancel()
            _log.info("session %s is over", session_id)


class EngineDownError(VisavisError):
    """No language model serves now."""

    code = "llm_unavailable"


class InternalError(VisavisError):
    """A fault of ours, in the words for a caller; the log has the rest."""

    code = "internal"
