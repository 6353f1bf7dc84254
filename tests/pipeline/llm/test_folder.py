from pathlib import Path

import pytest

from pipeline.errors import ConfigError
from pipeline.llm.folder import PASSAGE_WORDS, passages, read_folder


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def test_paragraphs_are_gathered_and_long_ones_cut() -> None:
    short = " ".join(["short"] * 50)
    long = " ".join(f"w{number}" for number in range(300))
    found = passages(f"{short}\n\n{short}\n \n{short}\n\n{long}\n\n\n")
    assert [len(passage.split()) for passage in found] == [100, 50, 120, 120, 60]
    assert all(len(passage.split()) <= PASSAGE_WORDS for passage in found)
    assert " ".join(found) == f"{short} {short} {short} {long}"


def test_an_empty_file_has_no_passages() -> None:
    assert passages(" \n\n ") == []


def test_text_and_markdown_at_any_depth(tmp_path: Path) -> None:
    write(tmp_path, a_md="A", sub__b_txt="B", c_pdf="no")
    assert [(document.name, document.passages) for document in read_folder(tmp_path)] == [
        ("a.md", ("A",)),
        ("sub/b.txt", ("B",)),
    ]


def test_without_an_access_file_everybody_sees_everything(tmp_path: Path) -> None:
    [document] = read_folder(write(tmp_path, a_md="A"))
    assert document.access.admits("anyone", "anything")


def test_with_an_access_file_what_it_does_not_list_is_seen_by_nobody(tmp_path: Path) -> None:
    write(tmp_path, a_md="A", b_md="B", c_md="C")
    listed = '{a.md: {tenants: [acme], roles: [staff]}, c.md: {tenants: ["*"], roles: [staff]}}'
    write(tmp_path, access_yaml="documents: " + listed)
    a, b, c = read_folder(tmp_path)
    assert a.access.admits("acme", "staff")
    assert not a.access.admits("acme", "guest")
    assert not a.access.admits("other", "staff")
    assert not b.access.admits("acme", "staff")
    assert c.access.admits("other", "staff")
    assert not c.access.admits("other", "guest")


def test_an_empty_list_admits_nobody(tmp_path: Path) -> None:
    write(tmp_path, a_md="A", access_yaml="documents: {a.md: {tenants: [], roles: ['*']}}")
    [document] = read_folder(tmp_path)
    assert not document.access.admits("acme", "staff")


@pytest.mark.parametrize(
    ("access", "says"),
    [
        ("documents: {a.md: {tenants: [x]}}", "a.md: expected the two keys"),
        ("documents: {a.md: {tenants: x, roles: [y]}}", "a.md: tenants: expected a list"),
        ("documents: {a.md: {tenants: [1], roles: [y]}}", "a.md: tenants: expected a list"),
        ("documents: {b.md: {tenants: [x], roles: [y]}}", "b.md: no such"),
        ("documents: [a.md]", "expected the key documents"),
        ("document: {}", "expected the key documents"),
        ("", "expected the key documents"),
        ("documents: {", "not YAML"),
    ],
)
def test_a_bad_access_file_stops_the_start(access: str, says: str, tmp_path: Path) -> None:
    write(tmp_path, a_md="A", access_yaml=access)
    with pytest.raises(ConfigError, match=says) as caught:
        read_folder(tmp_path)
    assert str(tmp_path / "access.yaml") in str(caught.value)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected a folder"):
        read_folder(tmp_path / "nowhere")


def test_a_folder_without_documents(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no \.txt or \.md file"):
        read_folder(tmp_path)


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"caf\xe9")
    with pytest.raises(ConfigError, match=r"a\.md: expected UTF-8"):
        read_folder(tmp_path)
