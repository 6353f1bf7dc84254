"""HTTP: the page, the signalling that Pipecat's clients speak, the server's health and its numbers."""

import json
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipeline.errors import BadInputError, BadOfferError, ServerFullError, StageError, VisavisError
from pipeline.webrtc.peer import Candidate
from services.config import Config
from services.gateway.sessions import EngineDownError, InternalError, Sessions
from services.telemetry.prometheus import Prometheus

_STATUS: dict[type[VisavisError], int] = {BadInputError: 400, ServerFullError: 503, EngineDownError: 503}

_T = TypeVar("_T")

_PAGE_FILES = {".html", ".css", ".js", ".svg", ".json", ".webp"}

_HEADERS = {
    # The page loads nothing from anywhere else, and nobody else may frame it.
    "content-security-policy": "default-src 'self'; img-src 'self' data:; "
    "media-src 'self' blob: mediastream:; frame-ancestors 'self'; base-uri 'none'; form-action 'none'",
    "permissions-policy": "microphone=(self), camera=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}


def make_app(config: Config, sessions: Sessions, prometheus: Prometheus) -> Starlette:
    """The ASGI application of one gateway."""
    page = Path(str(resources.files("web")))

    async def index(request: Request) -> Response:
        return FileResponse(page / "index.html")

    async def healthz(request: Request) -> Response:
        trouble = sessions.trouble()
        if trouble is not None:
            return _error(trouble)
        return JSONResponse({"status": "ok", "sessions": len(sessions)})

    async def metrics(request: Request) -> Response:
        numbers, kind = prometheus.exposition(request.headers.get("accept", ""))
        return Response(numbers, headers={"content-type": kind})

    async def settings(request: Request) -> Response:
        return JSONResponse(
            {
                "name": config.agent.name,
                "server_version": version("visavis"),
                "max_text_chars": config.agent.max_text_chars,
                "greeting": config.agent.greeting,
                "ice_servers": [_ice_server(server) for server in config.server.ice_servers],
            }
        )

    async def offer(request: Request) -> Response:
        body = await _json_object(request, config.server.max_offer_bytes)
        sdp = _field(body, "sdp", str)
        if body.get("type") != "offer":
            raise BadOfferError(f"type is {body.get('type')!r}; expected 'offer'")
        pc_id = body.get("pc_id")
        answer = await sessions.offer(
            sdp, pc_id if isinstance(pc_id, str) else None, restart=body.get("restart_pc") is True
        )
        return JSONResponse(dict(answer))

    async def candidates(request: Request) -> Response:
        body = await _json_object(request, config.server.max_offer_bytes)
        pc_id = _field(body, "pc_id", str)
        for entry in _field(body, "candidates", list):
            await sessions.candidate(pc_id, _candidate(entry))
        return JSONResponse({"status": "success"})

    return Starlette(
        routes=[
            Route("/", index),
            Route("/healthz", healthz),
            Route("/metrics", metrics),
            Route("/api/config", settings),
            Route("/api/offer", offer, methods=["POST"]),
            Route("/api/offer", candidates, methods=["PATCH"]),
            Mount("/web", _PageFiles(directory=page)),
        ],
        middleware=[Middleware(_Headers)],
        exception_handlers={VisavisError: _refuse, HTTPException: _refuse_http, Exception: _fail},
    )


class _PageFiles(StaticFiles):
    """The page's own files, and not the Python files that make its folder a package."""

    def lookup_path(self, path: str) -> tuple[str, Any]:
        return super().lookup_path(path) if Path(path).suffix in _PAGE_FILES else ("", None)


class _Headers:
    """Adds the same headers to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._headers = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self._headers]
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)


async def _json_object(request: Request, limit: int) -> dict[str, Any]:
    data = b""
    async for piece in request.stream():
        data += piece
        if len(data) > limit:
            raise HTTPException(413, f"the request is longer than {limit:,} bytes")
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadOfferError("the request is not JSON") from error
    if not isinstance(body, dict):
        raise BadOfferError(f"the request is a JSON {type(body).__name__}; expected an object")
    return body


def _field(body: dict[str, Any], name: str, kind: type[_T]) -> _T:
    value = body.get(name)
    if not isinstance(value, kind):
        raise BadOfferError(f"{name} is {type(value).__name__}; expected {kind.__name__}")
    return value


def _candidate(entry: Any) -> Candidate:
    match entry:
        case {"candidate": str(text)}:
            mid, index = entry.get("sdp_mid"), entry.get("sdp_mline_index")
            return Candidate(
                text, mid if isinstance(mid, str) else None, index if isinstance(index, int) else None
            )
    raise BadOfferError("a candidate is an object with candidate, sdp_mid and sdp_mline_index")


def _ice_server(server: Any) -> dict[str, Any]:
    credential = server.credential.get_secret_value() if server.credential else None
    entry = {"urls": list(server.urls), "username": server.username, "credential": credential}
    return {key: value for key, value in entry.items() if value is not None}


def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, VisavisError)
    return _error(error)


def _fail(request: Request, error: Exception) -> Response:
    # Starlette raises the error again once this is sent, and so it is logged.
    return _error(InternalError("Something went wrong in the server. Its log says what."))


def _refuse_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}.get(error.status_code, "error")
    return JSONResponse({"error": {"code": code, "message": error.detail}}, error.status_code)


def _error(error: VisavisError) -> Response:
    status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 500)
    # The message of a failed stage can name machines.
    message = error.told if isinstance(error, StageError) else str(error)
    return JSONResponse({"error": {"code": error.code, "message": message}}, status)
