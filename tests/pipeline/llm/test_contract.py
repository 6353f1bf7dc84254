"""Each of the ten fields, changed alone, is refused or changes where a turn goes."""

from dataclasses import replace

import pytest

from pipeline.llm.contract import (
    FIELDS,
    Admission,
    Attestation,
    Band,
    Contract,
    Criticality,
    Evidence,
    Failure,
    Fallback,
    KvFormat,
    ModelIdentity,
    Phase,
    Pool,
    Release,
    Reserve,
    Resumption,
    Routing,
    Selection,
    Transfer,
    TurnClass,
    WorkerRoles,
    WorkloadClass,
)
from pipeline.llm.contract_check import faults, mismatches

MODEL = ModelIdentity("aaaa", "bbbb", "cccc", None, "Q8_0", "engine 1")
KV = KvFormat("slot", 1, "f16", None, 2048, 4)
HERE = Pool("prefill", ("*",), "eu", "us", "inner")

CONTRACT = Contract(
    name="split",
    workload=WorkloadClass(("*",), ("*",), ("en",), Band(100, 1800), Band(1, 200), Criticality.LIVE),
    model=MODEL,
    kv=KV,
    roles=WorkerRoles(HERE, replace(HERE, name="decode")),
    transfer=Transfer("slot_file", loopback=True, encrypted=False, mbit_per_s=1000, timeout_s=2.0),
    admission=Admission(Reserve.PROMPT_AND_OUTPUT, 8, 5.0),
    routing=Routing(Selection.AFFINITY, 1),
    failure=Failure(10.0, "Something went wrong while answering."),
    fallback=Fallback("colocated", Resumption.RESEND, Resumption.CONTINUE),
    evidence=Evidence(("kv_bytes",), ("tests/engines",)),
)

TURN = TurnClass("vis", "acme", "en", unread=500, output=100)


def worker(phase: Phase, release: Release | None = None) -> Attestation:
    return Attestation(f"{phase}-1", phase, str(phase), release or CONTRACT.required)


BOTH = worker(Phase.PREFILL), worker(Phase.DECODE)


def told(contract: Contract, workers: tuple[Attestation, ...] = BOTH) -> list[str]:
    return [f"{found.field}: {found.what}" for found in (*faults(contract), *mismatches(contract, workers))]


def test_a_good_contract_and_good_workers_have_no_fault() -> None:
    assert told(CONTRACT) == []
    assert CONTRACT.workload.outside(TURN) is None
    assert len(FIELDS) == 10


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        (replace(TURN, language="de"), "language de"),
        (replace(TURN, unread=99), "99 tokens to read are not within 100 to 1800"),
        (replace(TURN, unread=1801), "1801 tokens to read"),
        (replace(TURN, output=201), "201 tokens to write"),
        (replace(TURN, criticality=Criticality.BACKGROUND), "background, not live"),
    ],
)
def test_another_workload_goes_another_way(turn: TurnClass, why: str) -> None:
    assert why in str(CONTRACT.workload.outside(turn))


def test_avatars_and_tenants_can_be_named() -> None:
    named = replace(CONTRACT, workload=replace(CONTRACT.workload, avatars=("vis",), tenants=("acme",)))
    assert named.workload.outside(TURN) is None
    for other in (replace(TURN, avatar="other"), replace(TURN, tenant="other")):
        assert "other is not of workload class" in str(named.workload.outside(other))


@pytest.mark.parametrize("part", sorted(CONTRACT.required.parts()))
def test_workers_of_another_release_are_refused(part: str) -> None:
    section, _, key = part.partition(".")
    value = getattr(getattr(CONTRACT.required, section), key)
    other = value + 1 if isinstance(value, int) else "other"
    changed = replace(
        CONTRACT.required, **{section: replace(getattr(CONTRACT.required, section), **{key: other})}
    )
    found = mismatches(CONTRACT, (worker(Phase.PREFILL), worker(Phase.DECODE, changed)))
    assert {each.field for each in found} == {part}
    assert any("decode-1" in each.what and str(other) in each.what for each in found)
    assert changed.fingerprint != CONTRACT.required.fingerprint


def test_a_part_that_the_contract_leaves_open_must_still_be_the_same_on_both_sides() -> None:
    loose = replace(CONTRACT, model=replace(MODEL, weights=None))
    for digest in ("aaaa", "dddd"):
        release = replace(CONTRACT.required, model=replace(MODEL, weights=digest))
        assert told(loose, (worker(Phase.PREFILL, release), worker(Phase.DECODE, release))) == []
    other = replace(CONTRACT.required, model=replace(MODEL, weights="dddd"))
    assert told(loose, (worker(Phase.PREFILL), worker(Phase.DECODE, other))) == [
        "model.weights: prefill-1 has aaaa, decode-1 has dddd"
    ]


def roles(prefill: Pool | None = HERE, **decode: object) -> Contract:
    return replace(
        CONTRACT,
        roles=WorkerRoles(prefill, replace(HERE, **{"name": "decode", **decode})),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (
            replace(CONTRACT, workload=replace(CONTRACT.workload, prompt=Band(100, 1900))),
            "workload: the largest prompt and output are 2100 tokens, kv.context is 2048",
        ),
        (
            replace(CONTRACT, workload=replace(CONTRACT.workload, output=Band(50, 10))),
            "workload.output: 50 to 10 is no band",
        ),
        (replace(CONTRACT, kv=replace(KV, context=1024)), "kv.context: the contract says 1024"),
        (replace(CONTRACT, model=replace(MODEL, runtime="engine 2")), "model.runtime: the contract says"),
        (roles(region="us"), "roles: state would cross from region eu to us"),
        (roles(zone="outer"), "roles: state would cross from zone inner to outer"),
        (roles(supplier="them"), "roles: state would cross from supplier us to them"),
        (roles(tenants=("acme",)), "roles: pool decode does not serve tenant *"),
        (roles(name="other"), "roles.decode: no decode worker of pool other answers"),
        (roles(prefill=None), "transfer: is needed where prefill and decode are different pools"),
        (replace(CONTRACT, transfer=None), "transfer: is needed"),
        (
            replace(CONTRACT, transfer=Transfer("nixl", False, False, 1000, 2.0)),
            "transfer.encrypted: state that leaves the machine must be encrypted",
        ),
        (
            replace(CONTRACT, failure=Failure(1.0, "…")),
            "failure.lease_s: is 1 s, less than a transfer may take (2 s)",
        ),
        (
            replace(CONTRACT, fallback=replace(CONTRACT.fallback, route="split")),
            "fallback.route: a route cannot fall back on itself",
        ),
        (
            replace(CONTRACT, fallback=replace(CONTRACT.fallback, after_first_token=Resumption.RESEND)),
            "fallback.after_first_token: what was shown would be said twice",
        ),
        (
            replace(CONTRACT, evidence=replace(CONTRACT.evidence, proven=("1234",))),
            "evidence.proven: prefill-1 runs release",
        ),
        (
            replace(CONTRACT, admission=Admission(Reserve.PROMPT_AND_OUTPUT, -1, 5.0)),
            "admission.queue: is -1; expected 0 or more",
        ),
        (
            replace(CONTRACT, routing=Routing(Selection.AFFINITY, 0)),
            "routing.attempts: is 0; expected 1 or more",
        ),
    ],
)
def test_a_contract_that_cannot_be_kept_is_refused(changed: Contract, expected: str) -> None:
    assert any(line.startswith(expected) for line in told(changed)), told(changed)


def test_a_boundary_may_be_crossed_where_the_contract_says_so() -> None:
    crossing = roles(region="us")
    assert told(replace(crossing, roles=replace(crossing.roles, may_cross=("region",)))) == []


def test_a_release_that_was_proven_is_taken() -> None:
    proven = (CONTRACT.required.fingerprint,)
    assert told(replace(CONTRACT, evidence=replace(CONTRACT.evidence, proven=proven))) == []


def test_one_pool_needs_no_transfer() -> None:
    assert told(replace(roles(prefill=None), transfer=None), (worker(Phase.DECODE),)) == []
