import importlib.metadata
from types import SimpleNamespace

import pytest

from pipeline.clock import MonotonicClock
from pipeline.errors import IncompatibleLibraryError, VisavisError
from pipeline.webrtc.peer import Peer
from pipeline.webrtc.tuning import internals


def test_the_installed_aiortc_is_the_one_this_was_written_for() -> None:
    internals.check_versions()


@pytest.mark.parametrize("version", ["1.15.0", "1.160.0", "2.0.0"])
async def test_another_version_is_refused_and_both_are_named(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr(internals, "version", lambda name: version)
    monkeypatch.setattr("pipeline.webrtc.peer.check_versions", internals.check_versions.__wrapped__)
    with pytest.raises(IncompatibleLibraryError, match=rf"aiortc {version} is installed.*written for 1\.16"):
        Peer(MonotonicClock())
    assert issubclass(IncompatibleLibraryError, VisavisError)


def test_an_attribute_that_is_gone_is_named() -> None:
    version = importlib.metadata.version("aiortc")
    with pytest.raises(IncompatibleLibraryError, match=f"{version}: SimpleNamespace has no _secret"):
        internals.read(SimpleNamespace(), "_secret")
    owner = SimpleNamespace()
    with pytest.raises(IncompatibleLibraryError, match="_secret"):
        internals.replace(owner, "_secret", 1)
    assert not hasattr(owner, "_secret")
