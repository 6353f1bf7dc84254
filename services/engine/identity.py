"""What a worker says it is: read off the engine where that tells, else off its file and settings."""

import hashlib
import importlib.metadata
import json
from pathlib import Path

import httpx

from pipeline.llm.contract import Attestation, KvFormat, ModelIdentity, Phase, Release
from services.engine.messages import Role, WorkerSettings

PROBE = (
    "Vis-à-vis: don't tokenise 1,250 $ twice…\n\t<|im_start|>Größe 你好 мир 🙂 "
    "antidisestablishmentarianism    four spaces"
)
"""Two tokenizers that agree on this are taken for the same."""

_PROBED = frozenset({"model.tokenizer", "model.template", "kv.context", "kv.slots"})


async def attestation(engine: httpx.AsyncClient, settings: WorkerSettings) -> Attestation:
    """Raises httpx.HTTPError."""
    properties = (await engine.get("/props")).raise_for_status().json()
    probe = (await engine.post("/tokenize", json={"content": PROBE})).raise_for_status().json()
    slots = (await engine.get("/slots")).raise_for_status().json()
    model = ModelIdentity(
        weights=_file_digest(Path(settings.model_path)),
        tokenizer=_digest(json.dumps(probe["tokens"])),
        template=_digest(properties["chat_template"]),
        adapter=None,
        precision=Path(settings.model_path).stem.rpartition(".")[2] or None,
        runtime=f"xllamacpp {importlib.metadata.version('xllamacpp')}",
    )
    kv = KvFormat(
        layout="llama.cpp slot",
        block=1,
        datatype="f16",
        compression=None,
        context=slots[0]["n_ctx"],
        slots=len(slots),
    )
    phase = Phase.PREFILL if settings.role is Role.PREFILL else Phase.DECODE
    return Attestation(settings.name, phase, str(settings.role), Release(model, kv), _PROBED)


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
