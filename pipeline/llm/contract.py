"""The contract that a route exists under: ten fields, and what the workers must show to keep it.

A route without a contract does not exist, and one whose workers do not keep theirs takes no turn. Both
phases are one *release*: what has to be the same for the state of one to mean anything to the other.
Everything here is arithmetic on data; who asks the workers, and what is done with a refusal, is elsewhere.
The fields are those of a governed prefill/decode split; `contract_check` says whether it is kept.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

ANY = "*"


class Criticality(StrEnum):
    LIVE = "live"
    """A person waits in a conversation."""
    BACKGROUND = "background"


class Phase(StrEnum):
    PREFILL = "prefill"
    DECODE = "decode"


class Reserve(StrEnum):
    """What is reserved at the destination before a prefill starts."""

    PROMPT_AND_OUTPUT = "prompt_and_output"
    """Room for the prompt and the longest output that was asked for."""


class Selection(StrEnum):
    """Which of several workers takes a turn."""

    AFFINITY = "affinity"
    """The one that holds the conversation's prefix, else the one with most room."""
    MOST_ROOM = "most_room"


class Resumption(StrEnum):
    """How a broken turn goes on elsewhere."""

    RESEND = "resend"
    """From its beginning: nothing of it was shown yet."""
    CONTINUE = "continue"
    """After the tokens that were shown."""
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Band:
    """Tokens, both ends included."""

    least: int
    most: int

    def __contains__(self, tokens: int) -> bool:
        return self.least <= tokens <= self.most


@dataclass(frozen=True, slots=True)
class WorkloadClass:
    """1. Whose turns, and which. "*" is everybody's."""

    avatars: tuple[str, ...]
    tenants: tuple[str, ...]
    languages: tuple[str, ...]
    prompt: Band
    """Tokens that the engine has to read: what its cache holds already does not count."""
    output: Band
    criticality: Criticality

    def outside(self, turn: "TurnClass") -> str | None:
        """What of a turn does not belong into this class; None: it belongs there."""
        for field, allowed, name in (
            ("avatar", self.avatars, turn.avatar),
            ("tenant", self.tenants, turn.tenant),
            ("language", self.languages, turn.language),
        ):
            if not admits(allowed, name):
                return f"{field} {name} is not of workload class {', '.join(allowed)}"
        for field, band, tokens in (("read", self.prompt, turn.unread), ("write", self.output, turn.output)):
            if tokens not in band:
                return f"{tokens} tokens to {field} are not within {band.least} to {band.most}"
        if turn.criticality is not self.criticality:
            return f"it is {turn.criticality}, not {self.criticality}"
        return None


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """2. What computes. Digests are SHA-256, hexadecimal. None: whatever it is, so it is the same."""

    weights: str | None
    tokenizer: str | None
    template: str | None
    adapter: str | None
    precision: str | None
    """As the engine names it, such as Q8_0."""
    runtime: str | None
    """Build of the engine, such as "xllamacpp 2026.10.11549"."""


@dataclass(frozen=True, slots=True)
class KvFormat:
    """3. How state is laid out. None as in `ModelIdentity`."""

    layout: str | None
    block: int | None
    """Tokens."""
    datatype: str | None
    compression: str | None
    context: int | None
    """Tokens that a sequence can have."""
    slots: int | None
    """Sequences that a worker can hold: llama.cpp takes no state from one with another number."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Workers of one kind, and the boundaries that they stand inside."""

    name: str
    tenants: tuple[str, ...]
    region: str
    supplier: str
    zone: str


@dataclass(frozen=True, slots=True)
class WorkerRoles:
    """4. Who may do what. `prefill` None: `decode` does both."""

    prefill: Pool | None
    decode: Pool
    may_cross: tuple[str, ...] = ()
    """Boundaries that state may cross: any of region, supplier, zone."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """5. How state moves."""

    protocol: str
    """A dialect's, such as slot_file, nixl, shared_storage."""
    loopback: bool
    """It never leaves the machine."""
    encrypted: bool
    mbit_per_s: int
    """Reserved on the path."""
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Admission:
    """6. Who is let in."""

    reserve: Reserve
    queue: int
    """Turns that may wait."""
    wait_s: float
    """For so long at most."""


@dataclass(frozen=True, slots=True)
class Routing:
    """7. Which worker, and who tries again."""

    selection: Selection
    attempts: int
    """Of this client, who alone retries; 1 is none."""


@dataclass(frozen=True, slots=True)
class Failure:
    """8. What becomes of a turn that ends early."""

    lease_s: float
    """After which state that nobody asks for is thrown away."""
    told: str
    """What the user is told."""


@dataclass(frozen=True, slots=True)
class Fallback:
    """9. Where a turn goes when this route fails it. `route` None: to one of its own workers."""

    route: str | None
    before_first_token: Resumption
    after_first_token: Resumption


@dataclass(frozen=True, slots=True)
class Evidence:
    """10. What shows that the route is safe."""

    metrics: tuple[str, ...]
    """Recorded of every turn."""
    tests: tuple[str, ...]
    """That passed."""
    proven: tuple[str, ...] = ()
    """Fingerprints of the releases that they passed with; none: any."""


@dataclass(frozen=True, slots=True)
class Release:
    """What must be the same in both phases: model identity and KV format, as one unit."""

    model: ModelIdentity
    kv: KvFormat

    def parts(self) -> dict[str, str | int | None]:
        """Dotted field → value."""
        return {
            f"{name}.{key}": value
            for name, section in (("model", self.model), ("kv", self.kv))
            for key, value in asdict(section).items()
        }

    @property
    def fingerprint(self) -> str:
        """SHA-256 over every part, in canonical JSON."""
        text = json.dumps(self.parts(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Contract:
    """One route's ten fields."""

    name: str
    workload: WorkloadClass
    model: ModelIdentity
    kv: KvFormat
    roles: WorkerRoles
    transfer: Transfer | None
    """None where nothing moves."""
    admission: Admission
    routing: Routing
    failure: Failure
    fallback: Fallback
    evidence: Evidence

    @property
    def required(self) -> Release:
        return Release(self.model, self.kv)


@dataclass(frozen=True, slots=True)
class TurnClass:
    """What of a turn decides where it may go. `unread`, `output`: tokens, the latter at most."""

    avatar: str
    tenant: str
    language: str
    unread: int
    output: int
    criticality: Criticality = Criticality.LIVE


@dataclass(frozen=True, slots=True)
class Attestation:
    """What one worker says it is, and what of that we saw for ourselves."""

    worker: str
    phase: Phase
    pool: str
    release: Release
    probed: frozenset[str] = frozenset()
    """Dotted fields that were read off the running engine; the others are declared by its operator."""


def attested(data: Mapping[str, Any]) -> Attestation:
    """From JSON. Raises ValueError, LookupError or TypeError for what is none."""
    release = Release(ModelIdentity(**data["release"]["model"]), KvFormat(**data["release"]["kv"]))
    phase, probed = Phase(data["phase"]), frozenset(data["probed"])
    return Attestation(data["worker"], phase, data["pool"], release, probed)


def admits(allowed: Sequence[str], name: str) -> bool:
    """Whether a list of names, or "*", has this one."""
    return ANY in allowed or name in allowed


FIELDS = tuple(field.name for field in fields(Contract) if field.name != "name")
"""The ten."""
