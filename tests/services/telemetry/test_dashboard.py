"""What ships for Prometheus and Grafana names what we really export."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from pipeline.clock import VirtualClock
from pipeline.timeline.loop_lag import LoopLag
from services import slo
from services.config import Config
from services.telemetry.prometheus import Prometheus
from tests.services.telemetry.turns import FREEZE, GAP, STALL, a_turn

CONFIGS = Path(__file__).parents[3] / "configs"
DASHBOARD = json.loads((CONFIGS / "grafana" / "visavis.json").read_text(encoding="utf-8"))


def loaded(name: str) -> Any:
    return yaml.safe_load((CONFIGS / name).read_text(encoding="utf-8"))


def queries() -> Iterator[tuple[str, str]]:
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


class Away:
    connected, dropped = False, 0


@pytest.fixture(scope="module")
def exported() -> dict[str, set[str]]:
    """Every name of a sample after a turn that has everything, with its labels."""
    prometheus = Prometheus(LoopLag(VirtualClock()), slo.load(), 1)
    prometheus.watch(Away())
    prometheus.exporter_failed("mqtt")
    prometheus.turn(a_turn(speech_gaps=[GAP], render_freezes=[FREEZE, STALL]))
    text = prometheus.exposition("")[0].decode()
    return {
        sample.name: set(sample.labels)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_every_number_on_the_dashboard_is_exported(exported: dict[str, set[str]]) -> None:
    asked = {name for _, query in queries() for name in re.findall(r"\b(?:visavis|process)_\w+", query)}
    assert len(asked) > 20
    assert asked - set(exported) == set()


def test_every_label_on_the_dashboard_is_one_of_its_number(exported: dict[str, set[str]]) -> None:
    for title, query in queries():
        names = re.findall(r"\b(?:visavis|process)_\w+", query)
        grouped = {
            label.strip() for group in re.findall(r"by \(([^)]*)\)", query) for label in group.split(",")
        }
        chosen = set(re.findall(r"(\w+)=\"", query)) - {"job"}
        for name in names:
            assert (grouped | chosen) <= exported[name], f"{title}: {query}"


def test_every_number_of_ours_is_on_the_dashboard_or_of_no_use_there(exported: dict[str, set[str]]) -> None:
    written = json.dumps(DASHBOARD)
    families = {re.sub(r"_(?:bucket|sum|count|created)$", "", name) for name in exported}
    unseen = {name for name in families if name.startswith("visavis_") and name not in written}
    assert unseen == {
        "visavis_build_info",
        "visavis_handoff_gap_seconds",
        "visavis_mqtt_connected",
        "visavis_queue_seconds",
        "visavis_turn_seconds",
    }


def test_panels_lie_side_by_side() -> None:
    taken: dict[tuple[int, int], str] = {}
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                assert taken.setdefault((x, y), panel["title"]) == panel["title"]


def test_prometheus_asks_where_the_server_listens() -> None:
    (job,) = loaded("prometheus.yml")["scrape_configs"]
    server = Config().server
    assert job["static_configs"] == [{"targets": [f"{server.host}:{server.port}"]}]
    assert job["metrics_path"] == "/metrics"


def test_what_compose_mounts_exists_and_fits_together() -> None:
    services = loaded("compose.telemetry.yaml")["services"]
    mounts = [mount.split(":") for each in services.values() for mount in each["volumes"]]
    assert [
        source for source, *_ in mounts if source.startswith("./") and not (CONFIGS / source).exists()
    ] == []
    inside = {source: target for source, target, *_ in mounts}
    (source,) = loaded("grafana/provisioning/datasources/prometheus.yaml")["datasources"]
    listen = [part for part in services["prometheus"]["command"] if "listen-address" in part]
    assert listen == [f"--web.listen-address={source['url'].removeprefix('http://')}"]
    (provider,) = loaded("grafana/provisioning/dashboards/visavis.yaml")["providers"]
    assert inside["./grafana/visavis.json"] == f"{provider['options']['path']}/visavis.json"
    assert services["grafana"]["environment"]["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"
    assert source["jsonData"]["timeInterval"] == loaded("prometheus.yml")["global"]["scrape_interval"]
