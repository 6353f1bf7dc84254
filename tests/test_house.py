"""Rules about the repository itself: what may stand in it, and that its documents tell the truth."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pipeline.events import Stage
from pipeline.timeline.record import empty_record
from services.cli import main

REPOSITORY = Path(__file__).parents[1]
LONGEST_FILE = 350
MAY_BE_LONGER = {"pipeline/events.py"}  # every message between stages, on purpose in one place
SOURCE = ("pipeline/", "services/", "web/")

OF_ONE_MACHINE = re.compile(
    r"(?:^|[^a-z.\w])/(?:work|farm|root|home/\w+)/"  # folders that only one machine has
    r"|pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|debian\.org"  # where packages happen to come from
    r"|index[-]url\b|find[-]links\b"
    r'|"resolved"\s*:',
    re.MULTILINE,
)


@cache
def tracked() -> tuple[str, ...]:
    listing = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("not a git checkout")
    return tuple(name for name in listing.stdout.splitlines() if (REPOSITORY / name).is_file())


def text_of(name: str) -> str:
    try:
        return (REPOSITORY / name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def documents() -> list[str]:
    return [name for name in tracked() if name.endswith(".md")]


# ── what may stand in it ───────────────────────────────────────────────────────────────────────


def test_nothing_names_a_machine_or_a_registry() -> None:
    found = {name: match[0] for name in tracked() if (match := OF_ONE_MACHINE.search(text_of(name)))}
    assert found == {}


def test_no_model_or_other_large_file_is_tracked() -> None:
    assert [name for name in tracked() if (REPOSITORY / name).stat().st_size > 1_000_000] == []


def test_source_files_are_short() -> None:
    sources = [
        name for name in tracked() if name.startswith(SOURCE) and name.endswith((".py", ".js", ".css"))
    ]
    lengths = {name: text_of(name).count("\n") for name in sources}
    assert sources
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE}.keys() <= MAY_BE_LONGER


def test_the_import_contracts_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert " 0 broken" in done.stdout


def test_no_module_escapes_the_import_contracts() -> None:
    modules = {
        ".".join(("pipeline", Path(name).parts[1].removesuffix(".py")))
        for name in tracked()
        if name.startswith("pipeline/") and name != "pipeline/__init__.py"
    }
    contracts = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    (stages,) = (set(each["modules"]) for each in contracts if each["type"] == "independence")
    below = {
        tuple(each["forbidden_modules"]): set(each["source_modules"])
        for each in contracts
        if "source_modules" in each
    }
    assert modules - below[("pipeline.session",)] == {"pipeline.session"}
    assert modules - stages - below[("pipeline.timeline",)] == set()


def test_files_that_the_project_file_names_exist() -> None:
    named = re.findall(r"\b(?:pipeline|services|web|tests)/[\w/.-]+", text_of("pyproject.toml"))
    assert named
    assert [name for name in named if not (REPOSITORY / name).exists()] == []


# ── what is installed is pinned ────────────────────────────────────────────────────────────────


def constraints() -> dict[str, str]:
    lines = text_of("requirements/constraints.txt").splitlines()
    return dict(re.fullmatch(r"([\w.-]+)==([\w.]+)", line).groups() for line in lines)  # type: ignore[union-attr]


def required(requirements: list[str], seen: set[str]) -> Iterator[str]:
    """Every distribution that these requirements bring, by canonical name."""
    for line in requirements:
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        if name in seen or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        seen.add(name)
        yield name
        yield from required(metadata.requires(name) or [], seen)


def test_everything_that_is_installed_is_pinned() -> None:
    project = tomllib.loads(text_of("pyproject.toml"))
    wanted = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    pinned = {canonicalize_name(name) for name in constraints()}
    assert set(required(wanted, set())) - pinned == set()


def test_pins_are_in_order_and_what_the_tests_run_with() -> None:
    pins = constraints()
    assert list(pins) == sorted(pins, key=lambda name: name.lower().replace("-", "_"))
    installed = {name: metadata.version(name) for name in pins}
    assert installed == pins


# ── the documents ──────────────────────────────────────────────────────────────────────────────


def test_commands_in_the_documents_exist() -> None:
    written = "\n".join(text_of(name) for name in documents())
    used = re.findall(r"(?:`|^ *\$? ?)(?:\.venv/bin/)?visavis ([a-z]+)([^`\n#]*)", written, re.MULTILINE)
    assert {command for command, _ in used} >= {"serve", "talk", "doctor"}
    for command, rest in used:
        assert command in main.commands
        found = main.commands[command]
        if isinstance(found, click.Group):
            found = found.commands[rest.split()[0]]
        known = {name for option in found.params for name in option.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= known, f"visavis {command}{rest}"


def test_every_command_is_in_the_readme() -> None:
    assert [name for name in main.commands if f"visavis {name}" not in text_of("README.md")] == []
    assert isinstance(main, click.Group)


def test_make_targets_in_the_documents_exist() -> None:
    written = "\n".join(text_of(name) for name in documents())
    targets = set(re.findall(r"^([a-z]+):", text_of("Makefile"), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z]+)", written)) <= targets


def test_variables_and_settings_in_the_documents_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    from services.config import Config
    from services.config.faults import find

    schema = Config.model_json_schema()
    sections = "|".join(schema["properties"])
    for name in documents():
        text = text_of(name)
        variables = [found.lower().split("__") for found in re.findall(r"VISAVIS_([A-Z][A-Z_]+)", text)]
        settings = [found.split(".") for found in re.findall(rf"`((?:{sections})\.[a-z_.]+)`", text)]
        wrong = [key for key in variables + settings if key[-1] != "py" and find(schema, tuple(key)) is None]
        assert wrong == [], name


def test_every_field_of_a_turns_record_is_defined() -> None:
    defined = set(re.findall(r"`([a-z_]+)`", text_of("docs/metrics.md")))
    assert set(empty_record()) - defined == set()
    assert {stage.value for stage in Stage} - defined == set()


def test_every_setting_is_read_somewhere() -> None:
    """Each as `section.key`: another section's key of the same name does not count."""
    settings = set(section_and_key("", yaml.safe_load(text_of("configs/local.yaml"))))
    assert "asr.threads" in settings
    read = set()
    for name in tracked():
        # What checks settings, or reports on them, does not use them.
        if name.startswith("services/") and name.endswith(".py") and not name.startswith("services/doctor/"):
            tree = ast.parse(text_of(name))
            read |= of_properties(tree) if name == "services/config/tree.py" else attributes(tree)
    assert sorted(settings - read) == []


def section_and_key(section: str, tree: dict[str, Any]) -> Iterator[str]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from section_and_key(key, value)
        else:
            yield f"{section}.{key}"


def attributes(tree: ast.AST) -> set[str]:
    """`b.c` for each `a.b.c` and each `b.c`."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Attribute(attr=owner) | ast.Name(id=owner), attr=name):
                found.add(f"{owner}.{name}")
    return found


def of_properties(tree: ast.Module) -> set[str]:
    """What sections read of themselves to offer it in another form."""
    return {
        f"{section.name.lower()}.{read.removeprefix('self.')}"
        for section in tree.body
        if isinstance(section, ast.ClassDef)
        for member in section.body
        if isinstance(member, ast.FunctionDef)
        and any(isinstance(each, ast.Name) and each.id == "property" for each in member.decorator_list)
        for read in attributes(member)
    }


def test_links_and_files_named_in_the_documents_exist() -> None:
    for name in documents():
        folder = (REPOSITORY / name).parent
        links = re.findall(r"\]\((?!https?:|#)([^)#]+)", text_of(name))
        assert [link for link in links if not (folder / link).exists()] == [], name
        named = re.findall(
            r"`((?:pipeline|services|web|configs|docs|tests|requirements)/[\w/.-]*)`", text_of(name)
        )
        assert [path for path in named if not (REPOSITORY / path).exists()] == [], name


def test_documents_named_in_the_code_exist() -> None:
    named = {path for name in tracked() for path in re.findall(r"\bdocs/[\w/-]+\.md", text_of(name))}
    assert [path for path in sorted(named) if not (REPOSITORY / path).is_file()] == []


def test_the_changelog_knows_this_version() -> None:
    headings = re.findall(r"^## \[([^\]]+)\]", text_of("CHANGELOG.md"), re.MULTILINE)
    assert headings
    assert headings[0] in ("Unreleased", metadata.version("visavis"))
