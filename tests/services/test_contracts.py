from pathlib import Path

import pytest
import yaml

from pipeline.errors import ConfigError
from services.config import contracts

PACKAGED = Path(__file__).parents[2] / "configs" / "contracts" / "embedded-split.yaml"


def test_the_packaged_contract_is_a_good_one() -> None:
    contract = contracts.load()
    assert contract.name == "embedded-split"
    assert contract == contracts.load(PACKAGED)


@pytest.mark.parametrize(
    ("section", "key", "value", "told"),
    [
        ("workload", "criticality", "urgent", "workload.criticality: input should be 'live' or 'background'"),
        ("kv", "blocks", 16, "kv.blocks: unexpected keyword argument"),
        ("transfer", "timeout_s", "soon", "transfer.timeout_s: input should be a valid number"),
        ("failure", "lease_s", 1, "failure.lease_s: is 1 s, less than a transfer may take (5 s)"),
        (
            "transfer",
            "loopback",
            False,
            "transfer.encrypted: state that leaves the machine must be encrypted",
        ),
    ],
)
def test_a_fault_is_named(tmp_path: Path, section: str, key: str, value: object, told: str) -> None:
    data = yaml.safe_load(PACKAGED.read_text())
    data[section][key] = value
    file = tmp_path / "contract.yaml"
    file.write_text(yaml.safe_dump(data))
    with pytest.raises(ConfigError) as caught:
        contracts.load(file)
    assert told in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_missing_field_is_named(tmp_path: Path) -> None:
    data = yaml.safe_load(PACKAGED.read_text())
    del data["fallback"]
    file = tmp_path / "contract.yaml"
    file.write_text(yaml.safe_dump(data))
    with pytest.raises(ConfigError, match="fallback: field required"):
        contracts.load(file)


@pytest.mark.parametrize("text", ["{", "", "[1]"])
def test_what_is_no_contract_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "contract.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"contract\.yaml"):
        contracts.load(file)
