"""`python -m services.lab.bench NAME`: run a benchmark, or compare runs that were kept."""

import json
import secrets
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from pipeline.errors import BadInputError, ConfigError, VisavisError
from services.lab import history
from services.lab.bench.sitting import Benchmark, Options, hold

_File = click.Path(path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Measure a server from its callers' side. docs/metrics.md says what the numbers mean."""


def measuring(command: Callable[..., Benchmark]) -> click.Command:
    """A command that makes a benchmark, with the options that all have."""

    def run(
        url: str | None,
        config: Path | None,
        settings: tuple[str, ...],
        out: Path,
        kept: Path | None,
        dropped: bool,
        seed: int | None,
        recordings: Path,
        **own: Any,
    ) -> None:
        overrides = dict(map(_setting, settings))
        if url is not None and (overrides or config):
            raise BadInputError("--config and --set are for a server of our own; leave them out with --url")
        chosen = secrets.randbelow(1 << 31) if seed is None else seed
        keep = None if dropped else kept
        hold(command(**own), Options(url, config, overrides, out, keep, chosen, recordings))

    run.__doc__ = command.__doc__
    shared = (
        click.option("--url", help="A running server, http://host:port. [default: start one]"),
        click.option("--config", type=_File, help="Settings of a server of our own, YAML."),
        click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="One setting."),
        click.option("--out", type=_File, default=Path("out/bench"), show_default=True, help="Folder."),
        click.option("--history", "kept", type=_File, default=history.DEFAULT, help="File of runs."),
        click.option("--no-history", "dropped", is_flag=True, help="A trial: do not add the run."),
        click.option("--seed", type=int, help="Repeat a run's choices. [default: new ones]"),
        click.option(
            "--recordings",
            type=_File,
            default=history.CHECKOUT.parent / "shared" / "speech",
            help="Folder of human speech. [default: ../shared/speech]",
        ),
    )
    for option in reversed(shared):
        run = option(run)
    run.__click_params__ += getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    return main.command(command.__name__.replace("_", "-"))(run)


def _setting(text: str) -> tuple[str, object]:
    """KEY=VALUE; a value that is not JSON is text."""
    key, separator, value = text.partition("=")
    if not separator:
        raise BadInputError(f"--set {text}: expected KEY=VALUE, such as turn_taking.patience.unsure_ms=400")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


@measuring
@click.option("-n", "--turns", default=40, show_default=True, help="Questions.")
def latency(turns: int) -> Benchmark:
    """Time to first audio over shuffled questions nobody has heard yet."""
    from services.lab.bench.quality import benchmark

    return benchmark("latency", turns, 0)


@measuring
@click.option("-n", "--utterances", default=120, show_default=True, help="Utterances with an inner pause.")
def cutoffs(utterances: int) -> Benchmark:
    """How often a pause of 300 to 900 ms inside an utterance is taken for its end."""
    from services.lab.bench.quality import benchmark

    return benchmark("cutoffs", 0, utterances)


@measuring
@click.option("-n", "--turns", default=40, show_default=True, help="Plain questions.")
@click.option("--utterances", default=120, show_default=True, help="Utterances with an inner pause.")
def talk_quality(turns: int, utterances: int) -> Benchmark:
    """Latency and cut-offs from one shuffled run."""
    from services.lab.bench.quality import benchmark

    return benchmark("talk-quality", turns, utterances)


@measuring
@click.option("-n", "--questions", default=40, show_default=True, help="Real interruptions.")
@click.option("--coughs", default=15, show_default=True, help="Coughs of 150 ms.")
@click.option("--hums", default=15, show_default=True, help="Listeners' mm-hm of 400 ms.")
def bargein(questions: int, coughs: int, hums: int) -> Benchmark:
    """How soon a reply falls silent for its caller, and that it does not for a cough."""
    from services.lab.bench.bargein import benchmark

    return benchmark(questions, coughs, hums)


@measuring
@click.option("--callers", default=4, show_default=True, help="Callers at once.")
@click.option("--alone", default=40, show_default=True, help="Turns of one caller.")
@click.option("--each", default=15, show_default=True, help="Turns of each of several callers.")
@click.option("--rounds", default=8, show_default=True, help="Times that all ask at the same moment.")
def sessions(callers: int, alone: int, each: int, rounds: int) -> Benchmark:
    """One caller against several, whose turns come at random."""
    from services.lab.bench.sessions import benchmark

    return benchmark(callers, alone, each, rounds)


@measuring
@click.option("--minutes", default=30.0, show_default=True, help="Length of the call.")
def endurance(minutes: float) -> Benchmark:
    """A long call: slopes of latency, memory, threads and descriptors."""
    from services.lab.bench.endurance import benchmark

    return benchmark(minutes)


@measuring
@click.option("-n", "--pairs", default=10, show_default=True, help="Stretches with, and as many without.")
def observing(pairs: int) -> Benchmark:
    """What a client's reports on what it plays and shows cost the server."""
    from services.lab.bench.observing import benchmark

    return benchmark(pairs)


@measuring
@click.option("-n", "--turns", default=20, show_default=True, help="Questions to each server.")
@click.option("--only", multiple=True, help="One technique; repeatable. [default: all]")
def techniques(turns: int, only: tuple[str, ...]) -> Benchmark:
    """What each technique buys, switched off one at a time."""
    from services.lab.bench.techniques import SWITCHED_OFF, benchmark

    if unknown := set(only) - set(SWITCHED_OFF):
        raise BadInputError(f"--only: {unknown.pop()!r} is none of {', '.join(SWITCHED_OFF)}")
    return benchmark(turns, only)


@measuring
@click.option("--peer-python", type=_File, required=True, help="Interpreter of the peer's environment.")
@click.option("--peer-folder", type=_File, required=True, help="Folder of peer_pipecat.py and ear.py.")
@click.option("--peer-argument", multiple=True, default=("--turn", "timeout"), help="For the peer.")
@click.option("-n", "--turns", default=20, show_default=True, help="Questions in a round.")
@click.option("--rounds", default=2, show_default=True, help="Rounds; sides take turns to begin.")
def peer(
    peer_python: Path, peer_folder: Path, peer_argument: tuple[str, ...], turns: int, rounds: int
) -> Benchmark:
    """Another voice bot and ours, side by side, by an independent caller."""
    from services.lab.bench.peer import benchmark

    return benchmark(peer_python, peer_folder, turns, rounds, peer_argument)


@main.command()
@click.argument("a")
@click.argument("b")
@click.option("--benchmark", help="Only this one. [default: all that both have]")
@click.option("--history", "kept", type=_File, default=history.DEFAULT, help="File of runs.")
def compare(a: str, b: str, benchmark: str | None, kept: Path) -> None:
    """Ratios of medians of two commits' newest runs, A over B; A may be `latest`."""
    from rich.console import Console

    from services.lab.bench.compare import compare as print_ratios

    print_ratios(kept, a, b, benchmark, Console())


if __name__ == "__main__":
    # Whatever stops a run, what was measured is kept.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        main()
    except VisavisError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2 if isinstance(error, BadInputError | ConfigError) else 1)
    except KeyboardInterrupt:
        sys.exit(130)
