"""`visavis split check`: do the workers keep the contract of their route?"""

import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from pipeline.clock import MonotonicClock
from pipeline.errors import ConfigError
from pipeline.llm.contract import Attestation, Contract
from pipeline.llm.contract_check import mismatches
from services import language_model
from services.config import contracts, load


async def run(config_file: Path | None, contract_file: Path | None, *, as_json: bool) -> int:
    """Start the workers, ask them what they are, and print what they should be beside it.

    0 when the route may be taken. Raises ConfigError, EngineError, MissingModelError.
    """
    config = load(config_file)
    if config.llm.kind == "openai" or (
        config.llm.kind == "embedded" and config.llm.embedded.pattern != "split"
    ):
        raise ConfigError(
            f"llm.kind is {config.llm.kind} and llm.embedded.pattern {config.llm.embedded.pattern}; expected "
            "a split: the pattern split, as in configs/split.yaml, or the kind vllm_nixl"
        )
    contract = contracts.load(contract_file) if contract_file else None
    console = Console(stderr=True)
    async with AsyncExitStack() as scope:
        cache, clock = config.server.cache_folder, MonotonicClock()
        engines = await language_model.start(config, cache, clock, console.print, scope, contract)
        workers = await engines.identities()
    contract = engines.contract
    assert contract is not None  # a split has one
    findings = mismatches(contract, workers)
    if as_json:
        told = {
            "contract": contract.name,
            "fingerprints": {worker.worker: worker.release.fingerprint for worker in workers},
            "findings": [{"field": each.field, "what": each.what} for each in findings],
        }
        click.echo(json.dumps(told, indent=2))
        return 1 if findings else 0
    out = Console()
    out.print(table(contract, workers))
    for each in findings:
        out.print(f"[bold]refused[/]: {each.field}: {each.what}")
    if not findings:
        out.print(f"The route {contract.name} may be taken: both workers are of one release.")
    return 1 if findings else 0


def table(contract: Contract, workers: Sequence[Attestation]) -> Table:
    """Each part of a release: by the contract, and by each worker."""
    shown = Table("field", contract.name, *(worker.worker for worker in workers), "known by")
    for field, wanted in contract.required.parts().items():
        values = [worker.release.parts()[field] for worker in workers]
        probed = all(field in worker.probed for worker in workers)
        shown.add_row(field, _short(wanted, "any"), *(_short(value, "none") for value in values),
                      "engine" if probed else "declared")  # fmt: skip
    return shown


def _short(value: str | int | None, nothing: str) -> str:
    text = nothing if value is None else str(value)
    return text if len(text) <= 26 else f"{text[:12]}…"
