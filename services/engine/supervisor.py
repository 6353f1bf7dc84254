"""Keeps the embedded engine alive: starts it, restarts it when it dies, takes it down at the end."""

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from pipeline.clock import Clock
from pipeline.errors import IllegalTransitionError, LanguageModelError
from pipeline.llm.contract import Attestation, attested
from pipeline.llm.route import Endpoint
from services.engine.messages import Ready, Role, WorkerSettings
from services.engine.worker_process import EngineError, worker_process

logger = logging.getLogger(__name__)

_ANSWER = 10.0
"""Seconds for a worker to say what it is."""


class EngineState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    FAILED = "failed"
    """Given up: it did not start, or died too often in a row."""
    STOPPED = "stopped"


TRANSITIONS: dict[EngineState, frozenset[EngineState]] = {
    EngineState.STARTING: frozenset({EngineState.READY, EngineState.FAILED, EngineState.STOPPED}),
    EngineState.READY: frozenset({EngineState.RESTARTING, EngineState.STOPPED}),
    EngineState.RESTARTING: frozenset({EngineState.READY, EngineState.FAILED, EngineState.STOPPED}),
    EngineState.FAILED: frozenset({EngineState.STOPPED}),
    EngineState.STOPPED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What the embedded engine serves, and how."""

    model: Path
    slots: int = 2
    """Conversations that can have their cache in the engine at once."""
    context: int = 2048
    """Tokens per slot."""
    threads: int = 1
    """llama.cpp's threads spin at a barrier after every operation. On two cores that are busy with
    anything else, a second thread turns 150 ms of prefill into 3 s; on two idle ones it saves 70 ms."""
    start_timeout: float = 60.0
    """Seconds for loading the model and warming up."""
    role: Role = Role.COLOCATED
    name: str = "engine"
    lease: float = 10.0
    """Seconds that a decode worker keeps a place for a request nobody asks for."""
    core: int | None = None
    """The processor that the worker keeps to; None: any."""


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Seconds, unless said otherwise."""

    first_delay: float = 0.1
    longest_delay: float = 5.0
    healthy_after: float = 30.0
    """Served for so long, a worker counts as healthy: its death is the first in a row again."""
    most_in_a_row: int = 10
    """Deaths, after which the engine is given up."""

    def delay(self, deaths: int) -> float:
        """Before the start that follows so many deaths in a row: doubling, up to the longest."""
        return float(min(self.longest_delay, self.first_delay * 2 ** (deaths - 1)))


class EngineSupervisor:
    """`async with` it: inside, the engine serves or is being restarted; after, no process is left."""

    def __init__(
        self,
        settings: EngineSettings,
        clock: Clock,
        *,
        policy: RestartPolicy | None = None,
        on_change: Callable[[EngineState], None] | None = None,
    ) -> None:
        """`on_change` is called on the event loop with each new state; it must not raise."""
        self._settings = settings
        self._clock = clock
        self._policy = policy or RestartPolicy()
        self._on_change = on_change
        self._state = EngineState.STARTING
        self._changed = asyncio.Event()
        self._ready: Ready | None = None
        self._api_key = ""
        self._ready_since = 0.0
        self._failure: EngineError | None = None
        self._supervision: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Start the engine and wait until it serves. Raises EngineError."""
        self._supervision = asyncio.create_task(self._supervise(), name="engine-supervisor")
        try:
            await self.wait_ready()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def state(self) -> EngineState:
        return self._state

    @property
    def pid(self) -> int | None:
        """Of the worker that serves now."""
        return self._ready.pid if self._ready else None

    def uptime(self) -> float:
        """Seconds that the worker has served; 0 while none does."""
        return self._clock.now() - self._ready_since if self._ready else 0.0

    def endpoint(self) -> Endpoint:
        """Where the engine serves now; another address and key after each restart.

        Raises LanguageModelError while it does not serve.
        """
        if self._ready is None:
            raise LanguageModelError(f"the embedded engine is {self._state}")
        return Endpoint(self._ready.url, self._api_key)

    def gate(self) -> Endpoint:
        """Where a split engine's gate is. Raises LanguageModelError while it does not serve."""
        if self._ready is None or self._ready.gate is None:
            raise LanguageModelError(f"the embedded engine {self._settings.name} is {self._state}")
        return Endpoint(self._ready.gate, self._api_key)

    async def identity(self) -> Attestation:
        """What a split engine's worker says it is. Raises LanguageModelError."""
        gate = self.gate()
        try:
            async with httpx.AsyncClient(timeout=_ANSWER, trust_env=False) as http:
                answer = await http.get(gate.at("/identity"), headers=gate.headers)
            return attested(answer.raise_for_status().json())
        except httpx.HTTPError as error:
            raise LanguageModelError(f"{self._settings.name} does not say what it is: {error!r}") from error

    async def wait_ready(self) -> None:
        """Return when the engine serves. Raises EngineError once it failed or was stopped."""
        while self._state is not EngineState.READY:
            if self._state in (EngineState.FAILED, EngineState.STOPPED):
                raise self._failure or EngineError(f"the embedded engine is {self._state}")
            await self._changed.wait()

    async def stop(self) -> None:
        """Take the worker down: its input is closed, then SIGTERM, then SIGKILL. Idempotent."""
        if self._supervision is not None:
            supervision, self._supervision = self._supervision, None
            supervision.cancel()
            await asyncio.wait({supervision})
        if self._state is not EngineState.STOPPED:
            self._become(EngineState.STOPPED)

    async def _supervise(self) -> None:
        deaths = 0
        while True:
            try:
                healthy = await self._serve()
            except EngineError as error:
                logger.error("%s", error)
                self._failure = error
                if self._state is EngineState.STARTING:  # a wrong model does not get better by itself
                    self._become(EngineState.FAILED)
                    return
                healthy = False
            deaths = 1 if healthy else deaths + 1
            if deaths >= self._policy.most_in_a_row:
                self._become(EngineState.FAILED)
                return
            await self._clock.sleep_until(self._clock.now() + self._policy.delay(deaths))

    async def _serve(self) -> bool:
        """One worker's life; True when it was a long one. Raises EngineError when it did not start."""
        self._api_key = secrets.token_urlsafe(32)
        settings = WorkerSettings(
            model_path=str(self._settings.model),
            api_key=self._api_key,
            slots=self._settings.slots,
            context=self._settings.context,
            threads=self._settings.threads,
            role=self._settings.role,
            name=self._settings.name,
            lease=self._settings.lease,
            core=self._settings.core,
        )
        try:
            async with worker_process(settings, self._settings.start_timeout) as worker:
                self._ready = worker.ready
                self._ready_since = self._clock.now()
                self._become(EngineState.READY)
                code = await worker.exited()
                healthy = self.uptime() >= self._policy.healthy_after
                self._ready = None
                self._become(EngineState.RESTARTING)
                logger.warning("the embedded engine ended with exit code %s and is restarted", code)
                return healthy
        finally:
            self._ready = None

    def _become(self, state: EngineState) -> None:
        if state not in TRANSITIONS[self._state]:
            raise IllegalTransitionError(f"engine: {self._state} → {state}")
        self._state = state
        self._changed.set()
        self._changed = asyncio.Event()
        logger.info("embedded engine: %s", state)
        if self._on_change is not None:
            self._on_change(state)
