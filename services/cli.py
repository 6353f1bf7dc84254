"""The `visavis` command. Thin: each command reads settings and hands over to the module that does it.

Exit codes: 0 done, 1 failed or something needed is missing, 2 bad input or settings.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from pipeline.errors import BadInputError, ConfigError, MissingModelError, VisavisError

_File = click.Path(path_type=Path)


class _Failed(click.ClickException):
    """A VisavisError as a person at a terminal reads it: one message, no traceback."""

    exit_code = 1

    def __init__(self, error: VisavisError) -> None:
        message = str(error)
        if isinstance(error, MissingModelError):
            message += (
                "\n`visavis doctor` shows everything that is missing here, with the commands that get it."
            )
        super().__init__(message)


class _Refused(_Failed):
    exit_code = 2


class _Command(click.Command):
    """A command with the options that all have: --config, passed on, and --debug, dealt with here."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.params += [
            click.Option(["--config", "config_file"], type=_File, help="Settings, YAML. [default: built in]"),
            click.Option(["--debug"], is_flag=True, help="Show where in the code an error came from."),
        ]

    def invoke(self, ctx: click.Context) -> Any:
        debug = ctx.params.pop("debug")
        try:
            return super().invoke(ctx)
        except VisavisError as error:
            if debug:
                raise
            bad_input = isinstance(error, ConfigError | BadInputError)
            raise (_Refused if bad_input else _Failed)(error) from error
        except ModuleNotFoundError as error:
            if debug:
                raise
            missing = MissingModelError(f"the Python package {error.name} is not installed")
            raise _Failed(missing) from error


class _Commands(click.Group):
    command_class = _Command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="visavis", prog_name="visavis")
def main() -> None:
    """Talk, face to face, with an avatar that runs on this machine."""


@main.command()
@click.option("--host", help="Loopback address to listen on. [default: 127.0.0.1]")
@click.option("--port", type=int, help="TCP port, 0 for a free one. [default: 8080]")
@click.option("--tls-cert", type=_File, help="Certificate chain, PEM. Needs --tls-key.")
@click.option("--tls-key", type=_File, help="Private key of --tls-cert, PEM.")
@click.option("--with-parent", is_flag=True, hidden=True, help="End when standard input ends.")
def serve(
    config_file: Path | None,
    host: str | None,
    port: int | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    with_parent: bool,
) -> None:
    """Run the whole stack and its page on this machine."""
    from services.config import load

    options = {"host": host, "port": port, "tls_cert": tls_cert, "tls_key": tls_key}
    config = load(config_file, _given("server", options))
    # Only now, because it takes a second: a wrong setting is told at once.
    from services.gateway.serve import run

    asyncio.run(run(config, with_parent=with_parent))


@main.command()
@click.argument("audio", nargs=-1, required=True, type=_File)
@click.option("--url", help="A running server, http://host:port. [default: start one]")
@click.option("--out", type=_File, default=Path("out"), show_default=True, help="Folder for the results.")
@click.option("--video", is_flag=True, help="Also record the face, reply.mp4.")
@click.pass_context
def talk(
    ctx: click.Context,
    config_file: Path | None,
    audio: tuple[Path, ...],
    url: str | None,
    out: Path,
    video: bool,
) -> None:
    """Hold a conversation without a browser: speak each AUDIO file as one turn.

    Writes reply.wav, captions.vtt and turns.json, with --video reply.mp4 too.
    """
    from services.config import load

    load(config_file)  # a wrong setting is told before anything is started
    from services.lab.talk import run

    ctx.exit(asyncio.run(run(config_file, audio, url, out, video)))


@main.command()
@click.argument("audio", nargs=-1, type=_File)
@click.option("--sessions", type=int, default=1, show_default=True, help="Users at once.")
@click.option("--turns", type=int, help="Turns of each user; this or --duration.")
@click.option("--duration", metavar="TIME", help="How long they talk: 90, 90s, 10m, 1h.")
@click.option("--browser", is_flag=True, help="Users are real Chromium, not aiortc.")
@click.option("--network", metavar="PROFILE", help="Relay calls: clean, lossy, bursty, jittery, slow.")
@click.option("--report", type=_File, required=True, help="Folder for report.json and report.html.")
@click.option("--url", help="A running server, http://host:port. [default: start one]")
@click.option("--slo", type=_File, help="Limits to judge by, YAML. [default: built in]")
@click.option("--seed", type=int, default=1, show_default=True, help="Of everything drawn by lot.")
@click.pass_context
def soak(ctx: click.Context, /, config_file: Path | None, **given: Any) -> None:
    """Have many users talk for a long time: each AUDIO file is one turn, else lines are synthesised.

    Exit code 0 only if every limit was measured and holds; Ctrl-C still writes the report.
    """
    from services.config import load

    load(config_file)  # a wrong setting is told before anything is started
    from services.lab.soak import options
    from services.lab.soak.command import run

    ctx.exit(asyncio.run(run(options.checked(config=config_file, **given))))


@main.command()
@click.argument("folder", metavar="DIR", type=_File)
@click.option("--models", is_flag=True, help="Ask real models what the recording holds no answer to.")
@click.pass_context
def replay(ctx: click.Context, config_file: Path | None, folder: Path, models: bool) -> None:
    """Hold a recorded call again, in virtual time, and say whether it goes as it did.

    DIR is one of those in the folder that telemetry.recordings names. With --config under other
    settings than the call's. Exit code 1 when something is decided otherwise.
    """
    from services.lab.replay.replay import run

    ctx.exit(asyncio.run(run(folder, config_file, models=models)))


@main.command()
@click.option("--json", is_flag=True, help="Print the findings as JSON.")
@click.pass_context
def doctor(ctx: click.Context, config_file: Path | None, json: bool) -> None:
    """Say what is missing or misconfigured on this machine, in plain words."""
    from rich.console import Console

    from services.doctor import examine, something_fails
    from services.doctor.finding import as_json, as_table

    findings = examine(config_file)
    if json:
        click.echo(as_json(findings))
    else:
        Console(markup=False, highlight=False, emoji=False).print(as_table(findings))
    ctx.exit(1 if something_fails(findings) else 0)


@main.group(cls=_Commands)
def split() -> None:
    """A language model whose prompts are read by one worker and answered by another."""


@split.command()
@click.option(
    "--contract", type=_File, help="Contract, YAML. [default: configs/contracts/embedded-split.yaml]"
)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_context
def check(ctx: click.Context, config_file: Path | None, contract: Path | None, as_json: bool) -> None:
    """Whether the workers keep the contract of their route. Exit code 1: they do not."""
    from services.split.check import run

    ctx.exit(asyncio.run(run(config_file, contract, as_json=as_json)))


def _given(section: str, options: Mapping[str, object]) -> dict[str, object]:
    """The options that were given, as settings by dotted key."""
    return {f"{section}.{name}": value for name, value in options.items() if value is not None}


if __name__ == "__main__":
    main()
