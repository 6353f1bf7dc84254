"""The HTTP side, without models: what is refused, and how it is said."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import pytest

from pipeline.clock import VirtualClock
from pipeline.errors import BadOfferError, LanguageModelError, ServerFullError, VisavisError
from pipeline.timeline.loop_lag import LoopLag
from pipeline.webrtc.peer import Candidate
from services import slo
from services.config import Config
from services.gateway.app import make_app
from services.gateway.sessions import EngineDownError
from services.telemetry.prometheus import Prometheus


class Door:
    """Stands for `Sessions`."""

    def __init__(self) -> None:
        self.refusal: VisavisError | None = None
        self.fault: Exception | None = None
        self.offers: list[tuple[str, str | None, bool]] = []
        self.candidates: list[tuple[str, Candidate]] = []

    def __len__(self) -> int:
        return len(self.offers)

    def trouble(self) -> VisavisError | None:
        return self.refusal

    async def offer(self, sdp: str, pc_id: str | None, *, restart: bool) -> Mapping[str, str]:
        if error := self.refusal or self.fault:
            raise error
        self.offers.append((sdp, pc_id, restart))
        return {"sdp": "v=0", "type": "answer", "pc_id": "p1"}

    async def candidate(self, pc_id: str, candidate: Candidate) -> None:
        self.candidates.append((pc_id, candidate))


@pytest.fixture
def door() -> Door:
    return Door()


@pytest.fixture
async def http(door: Door) -> AsyncIterator[httpx.AsyncClient]:
    prometheus = Prometheus(LoopLag(VirtualClock()), slo.load(), max_sessions=4)
    app = make_app(Config(), door, prometheus)  # type: ignore[arg-type]
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://visavis.test") as client:
        yield client


async def test_an_offer_as_pipecat_sends_it(http: httpx.AsyncClient, door: Door) -> None:
    body = {"sdp": "v=0…", "type": "offer", "pc_id": None, "restart_pc": False, "requestData": {"a": 1}}
    response = await http.post("/api/offer", json=body)
    assert response.json() == {"sdp": "v=0", "type": "answer", "pc_id": "p1"}
    assert door.offers == [("v=0…", None, False)]


async def test_trickled_candidates(http: httpx.AsyncClient, door: Door) -> None:
    entry = {"candidate": "candidate:1 1 udp 1 127.0.0.1 9 typ host", "sdp_mid": "0", "sdp_mline_index": 0}
    response = await http.patch("/api/offer", json={"pc_id": "p1", "candidates": [entry]})
    assert response.json() == {"status": "success"}
    assert door.candidates == [("p1", Candidate(entry["candidate"], "0", 0))]


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"not json", 400, "bad_offer"),
        (b"[1]", 400, "bad_offer"),
        (b"{}", 400, "bad_offer"),
        (b'{"sdp": 7, "type": "offer"}', 400, "bad_offer"),
        (b'{"sdp": "v=0", "type": "answer"}', 400, "bad_offer"),
        (b'{"sdp": "' + b"x" * 100_000 + b'", "type": "offer"}', 413, "too_large"),
    ],
)
async def test_what_is_not_an_offer(http: httpx.AsyncClient, content: bytes, status: int, code: str) -> None:
    response = await http.post("/api/offer", content=content)
    assert response.status_code == status
    assert response.json()["error"]["code"] == code
    assert response.json()["error"]["message"]


@pytest.mark.parametrize("body", [{"pc_id": "p1"}, {"pc_id": "p1", "candidates": [7]}, {"candidates": []}])
async def test_what_are_no_candidates(http: httpx.AsyncClient, body: Any) -> None:
    response = await http.patch("/api/offer", json=body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "bad_offer")


@pytest.mark.parametrize(
    ("refusal", "status", "code"),
    [
        (ServerFullError("All 4 places are taken."), 503, "server_full"),
        (EngineDownError("The engine is restarting."), 503, "llm_unavailable"),
        (BadOfferError("no audio"), 400, "bad_offer"),
    ],
)
async def test_refusals(
    http: httpx.AsyncClient, door: Door, refusal: VisavisError, status: int, code: str
) -> None:
    door.refusal = refusal
    response = await http.post("/api/offer", json={"sdp": "v=0", "type": "offer"})
    assert response.status_code == status
    assert response.json() == {"error": {"code": code, "message": str(refusal)}}


async def test_a_failed_stage_is_told_without_what_only_the_operator_may_know(
    http: httpx.AsyncClient, door: Door
) -> None:
    door.refusal = LanguageModelError("http://10.0.0.7:8000/v1 cannot be reached")
    response = await http.post("/api/offer", json={"sdp": "v=0", "type": "offer"})
    assert response.status_code == 500
    assert response.json() == {"error": {"code": "llm_failed", "message": LanguageModelError.told}}


async def test_a_fault_of_ours_is_said_plainly(http: httpx.AsyncClient, door: Door) -> None:
    door.fault = KeyError("http://10.0.0.7:8000/v1")
    response = await http.post("/api/offer", json={"sdp": "v=0", "type": "offer"})
    assert response.status_code == 500
    assert response.json()["error"]["code"] == "internal"
    assert "10.0.0.7" not in response.text


async def test_health_is_whether_a_session_can_start(http: httpx.AsyncClient, door: Door) -> None:
    assert (await http.get("/healthz")).json() == {"status": "ok", "sessions": 0}
    door.refusal = ServerFullError("full")
    response = await http.get("/healthz")
    assert (response.status_code, response.json()["error"]["code"]) == (503, "server_full")


async def test_metrics_are_as_prometheus_asks_for_them(http: httpx.AsyncClient) -> None:
    response = await http.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=")
    assert "visavis_sessions_limit 4.0" in response.text
    openmetrics = await http.get("/metrics", headers={"accept": "application/openmetrics-text"})
    assert openmetrics.headers["content-type"].startswith("application/openmetrics-text")
    assert (await http.post("/metrics")).status_code == 405


async def test_the_page_and_its_files_are_served_and_nothing_else(http: httpx.AsyncClient) -> None:
    index = await http.get("/")
    assert index.status_code == 200
    assert "frame-ancestors" in index.headers["content-security-policy"]
    assert (await http.get("/web/app.js")).status_code == 200
    for path in (
        "/web/__init__.py",
        "/web/../pyproject.toml",
        "/web/%2e%2e/pyproject.toml",
        "/nothing",
        "/web/",
    ):
        response = await http.get(path)
        assert response.status_code == 404, path
        assert response.json()["error"]["code"] == "not_found"


async def test_the_page_learns_its_settings(http: httpx.AsyncClient) -> None:
    settings = (await http.get("/api/config")).json()
    assert settings["name"] == "Vis"
    assert settings["ice_servers"] == []
    assert settings["max_text_chars"] == 2000
