import base64
import json
from dataclasses import replace

import pytest

from pipeline.clock import VirtualClock
from pipeline.errors import HandoffRefusedError
from pipeline.llm.handoff import TicketOffice, bound_to

GOOD = ("r1", "acme", "f00d")
"""Request, tenant, release."""


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def office(clock: VirtualClock) -> TicketOffice:
    return TicketOffice("decode-1", clock)


def ticket(office: TicketOffice) -> str:
    return office.issue("r1", "acme", 3, "f00d", 10.0)


def test_a_ticket_opens_its_place_once(office: TicketOffice) -> None:
    written = ticket(office)
    binding = office.redeem(written, *GOOD)
    assert (binding.slot, binding.destination) == (3, "decode-1")
    with pytest.raises(HandoffRefusedError, match="used before"):
        office.redeem(written, *GOOD)


def test_anybody_can_read_what_it_is_bound_to(office: TicketOffice) -> None:
    assert bound_to(ticket(office)).tenant == "acme"


@pytest.mark.parametrize(
    ("presented", "told"),
    [
        (("r2", "acme", "f00d"), "request r1, not for r2"),
        (("r1", "other", "f00d"), "tenant acme, not for other"),
        (("r1", "acme", "beef"), "release f00d, not for beef"),
    ],
)
def test_it_is_good_for_nothing_else(
    office: TicketOffice, presented: tuple[str, str, str], told: str
) -> None:
    written = ticket(office)
    with pytest.raises(HandoffRefusedError, match=told):
        office.redeem(written, *presented)
    assert office.redeem(written, *GOOD), "a wrong attempt does not use it up"


def test_it_expires(office: TicketOffice, clock: VirtualClock) -> None:
    written = ticket(office)
    clock._now += 10.1
    with pytest.raises(HandoffRefusedError, match="expired"):
        office.redeem(written, *GOOD)


def test_it_is_void_with_its_reservation(office: TicketOffice) -> None:
    written = ticket(office)
    office.void("r1")
    with pytest.raises(HandoffRefusedError, match="gone"):
        office.redeem(written, *GOOD)


def test_another_workers_ticket_is_none(office: TicketOffice, clock: VirtualClock) -> None:
    with pytest.raises(HandoffRefusedError, match="not written here"):
        TicketOffice("decode-1", clock).redeem(ticket(office), *GOOD)


def test_a_changed_ticket_is_none(office: TicketOffice) -> None:
    claims, _, mac = ticket(office).partition(".")
    data = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    data["slot"] = 0
    changed = base64.urlsafe_b64encode(json.dumps(data, sort_keys=True).encode()).decode().rstrip("=")
    with pytest.raises(HandoffRefusedError, match="not written here"):
        office.redeem(f"{changed}.{mac}", *GOOD)


@pytest.mark.parametrize("nonsense", ["", ".", "abc", "abc.def", "ü.ü", "e30.e30", "\x00"])
def test_nonsense_is_refused(office: TicketOffice, nonsense: str) -> None:
    with pytest.raises(HandoffRefusedError):
        office.redeem(nonsense, *GOOD)
    with pytest.raises(HandoffRefusedError):
        bound_to(nonsense)


def test_expired_tickets_are_forgotten(office: TicketOffice, clock: VirtualClock) -> None:
    for _ in range(50):
        ticket(office)
        clock._now += 11.0
    assert len(office._open) == 1


def test_a_binding_is_data(office: TicketOffice) -> None:
    binding = bound_to(ticket(office))
    assert replace(binding, slot=4) != binding
