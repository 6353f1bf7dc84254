"""Which slot of a worker is kept for which request, for how long, and what has come for it."""

from dataclasses import dataclass
from enum import StrEnum

from pipeline.clock import Clock
from pipeline.errors import AdmissionRefusedError, HandoffRefusedError, IllegalTransitionError


class PlaceState(StrEnum):
    RESERVED = "reserved"
    FILLING = "filling"
    """State is coming."""
    FILLED = "filled"
    FREED = "freed"


TRANSITIONS: dict[PlaceState, frozenset[PlaceState]] = {
    PlaceState.RESERVED: frozenset({PlaceState.FILLING, PlaceState.FREED}),
    PlaceState.FILLING: frozenset({PlaceState.FILLED, PlaceState.FREED}),
    PlaceState.FILLED: frozenset({PlaceState.FREED}),
    PlaceState.FREED: frozenset(),
}


@dataclass(slots=True)
class Place:
    """A slot that is kept for one request."""

    request: str
    tenant: str
    slot: int
    until: float
    """By the worker's clock; a heartbeat moves it."""
    state: PlaceState = PlaceState.RESERVED

    def become(self, state: PlaceState) -> None:
        """Raises IllegalTransitionError."""
        if state not in TRANSITIONS[self.state]:
            raise IllegalTransitionError(f"reservation {self.request}: {self.state} → {state}")
        self.state = state


class Reservations:
    """A worker's slots. llama.cpp makes a request for a busy slot wait and refuses nobody; this refuses."""

    def __init__(self, slots: int, clock: Clock, lease: float) -> None:
        """`lease`: seconds that a place is kept without a heartbeat."""
        self._clock = clock
        self._lease = lease
        self._slots = slots
        self._free = list(range(slots))
        self._places: dict[str, Place] = {}
        self._given_up: dict[str, float] = {}
        """Requests that were given up before they came, as a cancel can overtake them, and until when that is
        remembered."""

    @property
    def free(self) -> int:
        return len(self._free)

    @property
    def held(self) -> int:
        return len(self._places)

    def reserve(self, request: str, tenant: str) -> Place:
        """Raises AdmissionRefusedError when every slot is kept, HandoffRefusedError for a known request."""
        if request in self._places:
            raise HandoffRefusedError(f"request {request} has a place already")
        if request in self._given_up:
            raise HandoffRefusedError(f"request {request} was given up")
        if not self._free:
            raise AdmissionRefusedError(f"all {self._slots} slots are taken")
        place = Place(request, tenant, self._free.pop(0), self._clock.now() + self._lease)
        self._places[request] = place
        return place

    def place(self, request: str) -> Place:
        """Raises HandoffRefusedError."""
        try:
            return self._places[request]
        except KeyError:
            raise HandoffRefusedError(f"there is no place for request {request}") from None

    def renew(self, request: str) -> None:
        """Raises HandoffRefusedError: it was given up."""
        self.place(request).until = self._clock.now() + self._lease

    def take_back(self, request: str) -> Place | None:
        """The place, which belongs to nobody now and is not free before `cleared`; None: it has none."""
        now = self._clock.now()
        self._given_up = {name: until for name, until in self._given_up.items() if until > now}
        self._given_up[request] = now + self._lease
        place = self._places.pop(request, None)
        if place is not None:
            place.become(PlaceState.FREED)
        return place

    def cleared(self, place: Place) -> None:
        """Its slot is empty and can be had again."""
        self._free.append(place.slot)

    def overdue(self) -> list[str]:
        """Requests whose lease has run out."""
        now = self._clock.now()
        return [place.request for place in self._places.values() if place.until < now]
