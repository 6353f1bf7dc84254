"""Whether a contract can be kept, and whether workers keep it: every reason not to, by field."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.llm.contract import Attestation, Band, Contract, Phase, Resumption, admits


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason to refuse a route."""

    field: str
    """Dotted, of the contract."""
    what: str


def faults(contract: Contract) -> list[Finding]:
    """What is wrong with a contract by itself, before any worker is asked."""
    return list(_faults(contract))


def mismatches(contract: Contract, workers: Sequence[Attestation]) -> list[Finding]:
    """Where the workers differ from the contract or from each other, naming the field and both sides."""
    found = list(_absent(contract, workers))
    required = contract.required.parts()
    shown = {worker.worker: worker.release.parts() for worker in workers}
    for field, wanted in required.items():
        for name, parts in shown.items():
            if wanted is not None and parts[field] != wanted:
                found.append(Finding(field, f"the contract says {wanted}, {name} has {_told(parts[field])}"))
        found += _unlike(field, shown)
    proven = contract.evidence.proven
    for worker in workers:
        if proven and worker.release.fingerprint not in proven:
            what = (
                f"{worker.worker} runs release {worker.release.fingerprint[:12]}, which nothing proves safe"
            )
            found.append(Finding("evidence.proven", what))
    return found


def _unlike(field: str, shown: Mapping[str, Mapping[str, str | int | None]]) -> Iterator[Finding]:
    """The first pair of workers that differ in a field."""
    (first, parts), *others = list(shown.items()) or [("", {})]
    for name, others_parts in others:
        if others_parts[field] != parts[field]:
            yield Finding(
                field, f"{first} has {_told(parts[field])}, {name} has {_told(others_parts[field])}"
            )
            return


def _absent(contract: Contract, workers: Sequence[Attestation]) -> Iterator[Finding]:
    wanted = {Phase.DECODE: contract.roles.decode, Phase.PREFILL: contract.roles.prefill}
    for phase, pool in wanted.items():
        if pool is None:
            continue
        if not any(worker.phase is phase and worker.pool == pool.name for worker in workers):
            yield Finding(f"roles.{phase}", f"no {phase} worker of pool {pool.name} answers")


def _faults(contract: Contract) -> Iterator[Finding]:
    longest = contract.workload.prompt.most + contract.workload.output.most
    context = contract.kv.context
    if context is not None and longest > context:
        what = f"the largest prompt and output are {longest} tokens, kv.context is {context}"
        yield Finding("workload", what)
    for name in ("prompt", "output"):
        band: Band = getattr(contract.workload, name)
        if not 0 <= band.least <= band.most:
            yield Finding(f"workload.{name}", f"{band.least} to {band.most} is no band")
    yield from _split_faults(contract)
    fallback = contract.fallback
    if fallback.route == contract.name:
        yield Finding("fallback.route", "a route cannot fall back on itself")
    if fallback.after_first_token is Resumption.RESEND:
        yield Finding("fallback.after_first_token", "what was shown would be said twice; continue or refuse")
    if contract.failure.lease_s <= 0:
        yield Finding("failure.lease_s", f"is {contract.failure.lease_s:g}; expected more than 0")
    if contract.admission.queue < 0:
        yield Finding("admission.queue", f"is {contract.admission.queue}; expected 0 or more")
    if contract.routing.attempts < 1:
        yield Finding("routing.attempts", f"is {contract.routing.attempts}; expected 1 or more")


def _split_faults(contract: Contract) -> Iterator[Finding]:
    roles, transfer = contract.roles, contract.transfer
    if (roles.prefill is None) != (transfer is None):
        yield Finding("transfer", "is needed where prefill and decode are different pools, and only there")
    if roles.prefill is None or transfer is None:
        return
    for boundary in ("region", "supplier", "zone"):
        sides = getattr(roles.prefill, boundary), getattr(roles.decode, boundary)
        if sides[0] != sides[1] and boundary not in roles.may_cross:
            yield Finding("roles", f"state would cross from {boundary} {sides[0]} to {sides[1]}")
    for tenant in contract.workload.tenants:
        for pool in (roles.prefill, roles.decode):
            if not admits(pool.tenants, tenant):
                yield Finding("roles", f"pool {pool.name} does not serve tenant {tenant}")
    if not transfer.loopback and not transfer.encrypted:
        yield Finding("transfer.encrypted", "state that leaves the machine must be encrypted")
    if contract.failure.lease_s < transfer.timeout_s:
        what = f"is {contract.failure.lease_s:g} s, less than a transfer may take ({transfer.timeout_s:g} s)"
        yield Finding("failure.lease_s", what)


def _told(value: str | int | None) -> str:
    return "nothing" if value is None else str(value)
