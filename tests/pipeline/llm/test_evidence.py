from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.errors import ConfigError
from pipeline.events import Evidence
from pipeline.llm.budget import TokenBudget
from pipeline.llm.evidence import FolderEvidence
from pipeline.llm.folder import ANYBODY, Access, Document
from pipeline.llm.prompt import PromptBuilder
from pipeline.llm.tokens import EstimatedTokenCounter

ACME = Access(frozenset({"acme"}), frozenset({"*"}))
OTHER = Access(frozenset({"other"}), frozenset({"*"}))
HOURS = Document("hours.md", ("The branch opens at nine.", "The branch closes at five."), ANYBODY)
PETS = Document("pets.md", ("Dogs are welcome in the garden.",), ANYBODY)


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


def sources(found: Sequence[Evidence]) -> list[str]:
    return [evidence.source for evidence in found]


async def test_the_best_passage_comes_first(executor: ThreadPoolExecutor) -> None:
    evidence = FolderEvidence([PETS, HOURS], executor)
    found = await evidence.find("When does the branch open, at nine?", tenant="t", role="r")
    assert [passage.text for passage in found] == list(HOURS.passages)
    assert found[0].score > found[1].score > 0


@pytest.mark.parametrize("query", ["", "the of and", "zebra", "👋", "?!"])
async def test_nothing_in_common_is_no_evidence(query: str, executor: ThreadPoolExecutor) -> None:
    assert await FolderEvidence([PETS, HOURS], executor).find(query, tenant="t", role="r") == []


async def test_no_more_than_asked_for(executor: ThreadPoolExecutor) -> None:
    many = Document("many.md", tuple(f"branch number {number}" for number in range(50)), ANYBODY)
    assert len(await FolderEvidence([many], executor, top_k=7).find("branch", tenant="t", role="r")) == 7


async def test_a_canary_stays_with_its_tenant(executor: ThreadPoolExecutor) -> None:
    canaries = [
        Document("acme.md", ("The canary is yellow zanzibar.",), ACME),
        Document("other.md", ("The canary is blue quetzal.",), OTHER),
    ]
    evidence = FolderEvidence([*canaries, HOURS], executor)
    query = "canary zanzibar quetzal branch"
    # In turns, so that an index made for one is there when the other asks.
    for _ in range(2):
        assert sources(await evidence.find(query, tenant="acme", role="r"))[0] == "acme.md"
        assert sources(await evidence.find(query, tenant="other", role="r"))[0] == "other.md"
        for tenant, stranger in (("acme", "other.md"), ("other", "acme.md"), ("third", "acme.md")):
            assert stranger not in sources(await evidence.find(query, tenant=tenant, role="r"))


async def test_hidden_documents_do_not_show_in_scores(executor: ThreadPoolExecutor) -> None:
    hidden = Document("hidden.md", ("branch " * 100, "nine dogs open the branch"), OTHER)
    alone = await FolderEvidence([HOURS, PETS], executor).find("branch nine dogs", tenant="acme", role="r")
    beside = FolderEvidence([HOURS, PETS, hidden], executor)
    assert await beside.find("branch nine dogs", tenant="acme", role="r") == alone


async def test_who_may_see_nothing_finds_nothing(executor: ThreadPoolExecutor) -> None:
    hidden = Document("hidden.md", ("The canary is blue.",), OTHER)
    assert await FolderEvidence([hidden], executor).find("canary", tenant="acme", role="r") == []


async def test_a_prompt_can_grow_to_1500_tokens(executor: ThreadPoolExecutor) -> None:
    long = " ".join(["Our branch offers current accounts and savings accounts to everybody."] * 12)
    document = Document("accounts.md", tuple(f"{long} {number}" for number in range(20)), ANYBODY)
    found = await FolderEvidence([document], executor, top_k=20).find("accounts", tenant="t", role="r")
    builder = PromptBuilder(EstimatedTokenCounter(), TokenBudget(2048, evidence=1400))
    assert 1300 <= (await builder.build("Which accounts are there?", (), found)).tokens <= 1900


async def test_a_folder_is_opened_off_the_loop(executor: ThreadPoolExecutor, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("The branch opens at nine.")
    evidence = await FolderEvidence.open(tmp_path, executor)
    assert sources(await evidence.find("branch", tenant="t", role="r")) == ["a.md"]
    with pytest.raises(ConfigError, match="nowhere"):
        await FolderEvidence.open(tmp_path / "nowhere", executor)
