"""One turn through a split engine: its way is chosen, room is reserved, what happens is noted.

What an engine does at each step is its dialect's (`SplitEngine`); the order of the steps, who takes a turn
that one of them fails, and what is counted is the same for all of them:

    route      which way (routing.py), by workload class and health
    queue      room in the decode pool (admission.py)
    place      what the engine itself reserves where the reply will be written
    prefill    the prompt is read
    transfer   its state moves
    answer     the reply, of which the first token decides whether the turn may still go another way
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from pipeline.clock import Clock
from pipeline.errors import AdmissionRefusedError, LanguageModelError
from pipeline.events import Prompt, Usage
from pipeline.llm.contract import TurnClass
from pipeline.llm.pool.admission import Admission, Demand, Verdict
from pipeline.llm.pool.evidence import CANCELLED, FINISHED, EvidenceLine, Note, Reached
from pipeline.llm.pool.rates import Rates
from pipeline.llm.pool.routing import Choice, Part, Routing, Way
from pipeline.llm.route import Landing, Pattern, Route

_log = logging.getLogger(__name__)

_USED = 0.5
"""Share of the tokens that were handed over which the engine must have taken from its cache; what it read
itself below that came no way at all, whatever it said."""


class Place(Protocol):
    """Where a reply will be written."""

    @property
    def route(self) -> Route:
        """To the same worker without a hand-off: it reads the prompt itself."""
        ...


P = TypeVar("P", bound=Place)


class SplitEngine(Protocol[P]):
    """Two workers, one of which reads what the other answers. All raise LanguageModelError."""

    def serving(self) -> str:
        """The address of the worker that answers; a successor has another."""
        ...

    def by_prefill(self) -> Route:
        """To the worker that reads, for a turn that it also answers."""
        ...

    def place(self, request: str) -> AbstractAsyncContextManager[P]:
        """Where the reply will be written, for as long as the context lasts.

        Raises AdmissionRefusedError when there is none.
        """
        ...

    async def read(self, prompt: Prompt, place: P, line: EvidenceLine) -> None:
        """Have the prompt read."""
        ...

    async def move(self, prompt: Prompt, place: P, line: EvidenceLine) -> Landing:
        """Have its state moved to its place."""
        ...


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose turns these are, as a contract tells them apart."""

    avatar: str
    tenant: str
    language: str


@dataclass(frozen=True, slots=True)
class Terms:
    """What the route's contract says of each turn."""

    contract: str
    """Its name."""
    alone: bool
    """Where one worker fails before the first token, the other answers alone."""
    first_token: float = 20.0
    """Seconds within which a reply has to begin."""


@dataclass(frozen=True, slots=True)
class DecodePool:
    """What all conversations of a split engine share."""

    routing: Routing
    admission: Admission
    rates: Rates
    note: Note


@dataclass(slots=True)
class _Turn:
    line: EvidenceLine
    others: list[tuple[Way, Callable[[], Route]]]
    """Who may still answer it alone, in this order."""


class GovernedSplit(Generic[P]):
    """A `Split` of one conversation."""

    def __init__(
        self, engine: SplitEngine[P], pool: DecodePool, clock: Clock, *, caller: Caller, terms: Terms
    ) -> None:
        self._engine = engine
        self._pool = pool
        self._clock = clock
        self._caller = caller
        self._terms = terms
        self._turns: dict[str, _Turn] = {}
        """Under way, by request."""
        self._read_before = 0
        """Tokens of the last prompt: the next one mostly begins like it."""

    @asynccontextmanager
    async def handed_over(self, prompt: Prompt) -> AsyncIterator[Landing]:
        """The prompt read and its state where the reply is written, for as long as the context lasts.

        Where one of the two workers fails before there is anything of a reply, the other does it alone: both
        are of one release, and the prompt is the same. Raises AdmissionRefusedError when it cannot be
        answered in time, LanguageModelError when no worker may answer.
        """
        line = EvidenceLine(
            request=secrets.token_urlsafe(16),
            tenant=self._caller.tenant,
            contract=self._terms.contract,
            prompt_digest=prompt.digest,
            prompt_tokens=prompt.tokens,
            unread_tokens=max(1, prompt.tokens - self._read_before),
        )
        turn = self._turns[line.request] = _Turn(line, [])
        try:
            async with AsyncExitStack() as scope:
                landing = await self._landing(prompt, turn, scope)
                line.reached = Reached.ANSWER
                if line.way != Way.DECODE_ALONE:  # else the worker that reads has not seen it
                    self._read_before = prompt.tokens
                yield replace(landing, request=line.request)
            line.outcome = FINISHED
        except (asyncio.CancelledError, GeneratorExit):
            line.outcome = CANCELLED
            raise
        except LanguageModelError as error:
            line.outcome = error.code
            raise
        finally:
            del self._turns[line.request]
            self._pool.note(line)

    def instead(self, landing: Landing, error: LanguageModelError) -> Landing:
        """Where a prompt goes whose landing failed it before the first token. Raises `error` when nowhere."""
        turn = self._turns[landing.request]
        if landing.pattern is Pattern.SPLIT:
            self._pool.routing.health[Part.DECODE].failed()
        while turn.others and self._terms.alone:
            way, route = turn.others.pop(0)
            with contextlib.suppress(LanguageModelError):
                return replace(self._alone(turn.line, way, route(), error), request=landing.request)
        raise error

    def answered(self, landing: Landing, usage: Usage) -> None:
        """The reply is over; `usage` says whether the state that was handed over was also used."""
        line = self._turns[landing.request].line
        line.used_tokens = usage.cached_tokens
        if landing.pattern is not Pattern.SPLIT:
            return
        health = self._pool.routing.health
        if usage.cached_tokens is not None and usage.cached_tokens < _USED * landing.tokens:
            line.fallback = "silent local prefill"
            health[Part.TRANSFER].failed()
            _log.warning(
                "request %s: %d tokens were handed over and %d used; the decode worker read the rest itself",
                *(line.request, landing.tokens, usage.cached_tokens),
            )
        else:
            for part in Part:
                health[part].succeeded()

    async def _landing(self, prompt: Prompt, turn: _Turn, scope: AsyncExitStack) -> Landing:
        line, engine = turn.line, self._engine
        choice = self._chosen(prompt, line)
        if choice.way in (Way.SPLIT, Way.DECODE_ALONE):
            choice = await self._admitted(prompt, line, choice, scope)
        line.way, line.why = choice.way, choice.why
        if choice.way is Way.NOWHERE:
            raise LanguageModelError(choice.why)
        if choice.way is Way.PREFILL_ALONE:
            return _landing(engine.by_prefill(), line, fallback=choice.fallback)
        try:
            line.reached = Reached.PLACE
            with self._counted(Part.DECODE):
                place = await scope.enter_async_context(engine.place(line.request))
        except AdmissionRefusedError:
            raise
        except LanguageModelError as error:
            if not self._terms.alone:
                raise
            return self._alone(line, Way.PREFILL_ALONE, engine.by_prefill(), error)
        if choice.way is Way.DECODE_ALONE:
            return _landing(place.route, line, fallback=True)
        try:
            landing = await self._moved(prompt, place, line)
        except LanguageModelError as error:
            if not self._terms.alone:
                raise
            return self._alone(line, Way.DECODE_ALONE, place.route, error)
        turn.others = [(Way.PREFILL_ALONE, engine.by_prefill), (Way.DECODE_ALONE, lambda: place.route)]
        return landing

    async def _moved(self, prompt: Prompt, place: P, line: EvidenceLine) -> Landing:
        line.reached, begun = Reached.PREFILL, self._clock.now()
        with self._counted(Part.PREFILL):
            await self._engine.read(prompt, place, line)
        line.reached, read = Reached.TRANSFER, self._clock.now()
        if line.read_tokens is not None:
            self._pool.rates.read(line.read_tokens, read - begun)
        with self._counted(Part.TRANSFER):
            landing = await self._engine.move(prompt, place, line)
        if landing.seconds is not None:
            self._pool.rates.moved(landing.seconds)
        return replace(landing, queued=_queued(line))

    def _chosen(self, prompt: Prompt, line: EvidenceLine) -> Choice:
        """Where a turn goes if there is room."""
        routing, caller = self._pool.routing, self._caller
        try:
            self._pool.admission.serves(self._engine.serving())
        except LanguageModelError as error:
            return routing.without(Way.PREFILL_ALONE, str(error))
        output = prompt.max_output_tokens
        return routing.choose(
            TurnClass(caller.avatar, caller.tenant, caller.language, line.unread_tokens, output)
        )

    async def _admitted(
        self, prompt: Prompt, line: EvidenceLine, choice: Choice, scope: AsyncExitStack
    ) -> Choice:
        """The same choice, with room in the decode pool, or another. Raises AdmissionRefusedError."""
        demand = Demand(
            line.request,
            unread=line.unread_tokens,
            prompt=prompt.tokens,
            output=prompt.max_output_tokens,
            first_token_within=self._terms.first_token,
        )
        decision = self._pool.admission.decide(demand, elsewhere=self._terms.alone)
        line.reached, line.admission = Reached.QUEUE, f"{decision.verdict}: {decision.why}"
        if (predicted := decision.predicted_first_token) is not None:
            line.predicted_first_token_ms = round(predicted * 1000, 1)
        if decision.verdict is Verdict.ELSEWHERE:
            return Choice(Way.PREFILL_ALONE, decision.why, fallback=True)
        begun = self._clock.now()
        await scope.enter_async_context(self._pool.admission.admitted(demand))
        line.queue_ms = round((self._clock.now() - begun) * 1000, 1)
        return choice

    def _alone(self, line: EvidenceLine, way: Way, route: Route, error: LanguageModelError) -> Landing:
        """One worker does both, because of `error`."""
        line.way, line.fallback = way, str(error)
        _log.warning("%s: %s", way.replace("_", " "), error)
        return _landing(route, line, fallback=True)

    @contextlib.contextmanager
    def _counted(self, part: Part) -> Iterator[None]:
        """A part that fails is left alone after a while; only a reply says that it is well."""
        try:
            yield
        except AdmissionRefusedError:  # it is well, and full
            raise
        except LanguageModelError:
            self._pool.routing.health[part].failed()
            raise


def _landing(route: Route, line: EvidenceLine, *, fallback: bool) -> Landing:
    """At one worker for both; `fallback`: not because the turn is one of those."""
    return Landing(
        route,
        0,
        None,
        None,
        None,
        queued=_queued(line),
        pattern=Pattern.COLOCATED,
        fallback_from=Pattern.SPLIT if fallback else None,
    )


def _queued(line: EvidenceLine) -> float | None:
    return None if line.queue_ms is None else line.queue_ms / 1000
