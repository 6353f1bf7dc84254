"""Is this machine fit for it: processor, memory, cache folder, port, network, servers around it?"""

import os
import shutil
import socket

import httpx
import psutil

from services import tls as pair
from services.config import Config
from services.doctor.finding import Finding, Verdict

GIB = 1024**3
CACHE_BYTES = 250 * 1024**2
"""The re-quantised language model and the voice in parts, with room to write them beside the old."""
PREPARED = {
    "the re-quantised language model": "*.Q8_0.gguf",
    "the voice in parts": "*.aligned.zip",
}
"""What is made once and kept in the cache folder, by the names that its makers give it."""
ENOUGH_MEMORY = 2 * GIB
ENOUGH_CORES = 2
CONNECT_SECONDS = 3.0


def cores(config: Config) -> Finding:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    detail = f"{count} usable by this process"
    threads = max(config.asr.threads, config.llm.embedded.threads)
    if count < ENOUGH_CORES:
        return Finding("cores", Verdict.WARN, f"{detail}; replies will be late", "give it two or more")
    if threads > count:
        remedy = "set asr.threads and llm.embedded.threads to at most that"
        return Finding("cores", Verdict.WARN, f"{detail}, but {threads} threads are configured", remedy)
    return Finding("cores", Verdict.OK, detail)


def memory(config: Config) -> Finding:
    free = psutil.virtual_memory().available
    detail = f"{free / GIB:.1f} GiB available"
    if free < ENOUGH_MEMORY:
        remedy = f"free {ENOUGH_MEMORY / GIB:.0f} GiB, or lower server.max_sessions or llm.context_tokens"
        return Finding("memory", Verdict.WARN, detail, remedy)
    return Finding("memory", Verdict.OK, detail)


def cache(config: Config) -> Finding:
    folder = config.server.cache_folder
    existing = folder
    while not existing.exists():
        existing = existing.parent
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return Finding(
            "cache", Verdict.FAIL, f"{folder} cannot be written", "set server.cache_dir to a folder of yours"
        )
    missing = [name for name, pattern in PREPARED.items() if not any(folder.rglob(pattern))]
    free = shutil.disk_usage(existing).free
    state = f"to be made at the first start: {', '.join(missing)}" if missing else "everything is prepared"
    detail = f"{folder}, {free / GIB:.1f} GiB free; {state}"
    if free < CACHE_BYTES and missing:
        remedy = f"free {CACHE_BYTES // 1024**2} MiB, or set server.cache_dir to another disk"
        return Finding("cache", Verdict.FAIL, detail, remedy)
    return Finding("cache", Verdict.OK, detail)


def port(config: Config) -> Finding:
    host, number = config.server.host, config.server.port
    if number == 0:
        return Finding("port", Verdict.OK, "a free one is taken at each start")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, number))
        except OSError as error:
            detail = f"{host}:{number} cannot be used: {error.strerror}"
            return Finding(
                "port",
                Verdict.FAIL,
                detail,
                "another: visavis serve --port 0, or VISAVIS_SERVER__PORT=9000 make demo",
            )
    return Finding("port", Verdict.OK, f"{host}:{number} is free")


def tls(config: Config) -> Finding:
    certificate, key = config.server.tls_cert, config.server.tls_key
    if certificate is None or key is None:
        return Finding("tls", Verdict.OK, "off; browsers allow the microphone on http://localhost")
    if (fault := pair.fault(certificate, key)) is not None:
        return Finding("tls", Verdict.FAIL, fault, pair.REMEDY)
    return Finding("tls", Verdict.OK, f"{certificate} and {key} belong together")


def network(config: Config) -> Finding:
    up = sorted(
        name for name, state in psutil.net_if_stats().items() if state.isup and not _is_loopback(name)
    )
    if not up:
        return Finding(
            "network", Verdict.OK, "no interface but loopback: calls from this machine still connect"
        )
    return Finding("network", Verdict.OK, ", ".join(up))


def language_model_server(config: Config) -> Finding:
    subject, endpoint = "engine", config.llm.openai
    if config.llm.kind == "embedded":
        split = config.llm.embedded.pattern == "split"
        what = "embedded, two workers" if split else "embedded"
        return Finding(subject, Verdict.OK, f"{what}, started with the server")
    if config.llm.kind == "vllm_nixl":
        return _vllm_engines(config)
    assert endpoint.base_url is not None  # the settings see to it when kind is openai
    headers = {"Authorization": f"Bearer {endpoint.api_key.get_secret_value()}"} if endpoint.api_key else {}
    address = f"{endpoint.base_url}/models"
    try:
        reply = httpx.get(address, headers=headers, timeout=CONNECT_SECONDS)
    except httpx.HTTPError as error:
        detail = f"{address} does not answer: {error}"
        return Finding(subject, Verdict.FAIL, detail, "start the engine, or correct llm.openai.base_url")
    if reply.status_code in (401, 403):
        detail = f"{address} refuses the key: {reply.status_code}"
        return Finding(subject, Verdict.FAIL, detail, "set VISAVIS_LLM__OPENAI__API_KEY")
    if reply.is_error:
        # Not every compatible server lists its models; the conversation itself may still work.
        return Finding(
            subject, Verdict.WARN, f"{address} answers {reply.status_code}, so the model is unchecked"
        )
    if f'"{endpoint.model}"' not in reply.text:
        detail = f"{endpoint.base_url} does not list the model {endpoint.model}"
        return Finding(subject, Verdict.WARN, detail, f"see {address} for the names it has")
    return Finding(subject, Verdict.OK, f"{endpoint.base_url} serves {endpoint.model}")


def _vllm_engines(config: Config) -> Finding:
    addresses = [each.url for each in (config.llm.vllm_nixl.prefill, config.llm.vllm_nixl.decode)]
    for address, phase in zip(addresses, ("prefill", "decode"), strict=True):
        try:
            httpx.get(f"{address}/health", timeout=CONNECT_SECONDS).raise_for_status()
        except httpx.HTTPError as error:
            detail = f"{address}/health does not answer: {error}"
            remedy = f"start the engine, or correct llm.vllm_nixl.{phase}.url"
            return Finding("engine", Verdict.FAIL, detail, remedy)
    return Finding(
        "engine", Verdict.OK, f"{' and '.join(map(str, addresses))}: visavis split check says more"
    )


def browser(config: Config) -> Finding:
    found = shutil.which("chromium") or shutil.which("google-chrome")
    detail = found or "no Chromium here: any browser can be used, only the browser tests are skipped"
    return Finding("browser", Verdict.OK, detail)


def _is_loopback(interface: str) -> bool:
    return interface.startswith("lo")
