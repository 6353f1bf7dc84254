"""The server that a synthetic user starts for itself; these only see it refuse."""

from pathlib import Path

import pytest

from services.lab.own_server import ServerStartError, own_server


async def test_a_folder_named_services_is_not_taken_for_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "services").mkdir()
    (tmp_path / "services" / "__init__.py").write_text("raise SystemExit('not ours')")
    monkeypatch.chdir(tmp_path)
    settings = tmp_path / "wrong.yaml"
    settings.write_text("server: {max_sessions: no}")
    with pytest.raises(ServerStartError, match=r"server\.max_sessions"):
        async with own_server(settings):
            pass


async def test_settings_by_dotted_key_reach_the_server() -> None:
    with pytest.raises(ServerStartError, match=r"environment, VISAVIS_ASR__SHORT_WINDOW__MARGIN_S"):
        async with own_server(None, {"asr.short_window.margin_s": "wide"}):
            pass
