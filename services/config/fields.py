"""The kinds of value that settings have."""

import ipaddress
import re
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from services.config.faults import expect


def _expand(path: Path) -> Path:
    return path.expanduser()


def _existing_file(path: Path) -> Path:
    if not path.is_file():
        raise expect("the path of a file that exists")
    return path


def _existing_folder(path: Path) -> Path:
    if not path.is_dir():
        raise expect("the path of a folder that exists")
    return path


def _loopback(host: str) -> str:
    if host != "localhost":
        try:
            loopback = ipaddress.ip_address(host).is_loopback
        except ValueError:
            loopback = False
        if not loopback:
            raise expect(
                "127.0.0.1, ::1 or localhost: there are no access tokens yet, so the server must not be "
                "reachable from other machines"
            )
    return host


def _language(code: str) -> str:
    if not (code.isascii() and code.isalpha() and code.islower() and len(code) in (2, 3)):
        raise expect("an ISO 639 code such as en")
    return code


def _http_url(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise expect("an address that starts with http:// or https://")
    return url.rstrip("/")


def _mqtt_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        named = parts.scheme in ("mqtt", "mqtts") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is none
        named = False
    if not named or parts.username or parts.path not in ("", "/") or parts.query:
        raise expect("an address such as mqtt://host:1883, or mqtts:// for TLS, without a name or path in it")
    return url


def topic_level(name: str) -> str:
    """A name as one level of a topic: what cannot stand there becomes a hyphen."""
    return re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII)[:64] or "unnamed"


def _topic_level(name: str) -> str:
    if name != topic_level(name):
        raise expect("1 to 64 letters, digits, dots, hyphens and underscores: it is one level of MQTT topics")
    return name


def _ice_url(url: str) -> str:
    if not url.startswith(("stun:", "stuns:", "turn:", "turns:")):
        raise expect("an address that starts with stun:, stuns:, turn: or turns:")
    return url


def as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


UserPath = Annotated[Path, AfterValidator(_expand)]
FilePath = Annotated[UserPath, AfterValidator(_existing_file)]
FolderPath = Annotated[UserPath, AfterValidator(_existing_folder)]
LoopbackHost = Annotated[str, AfterValidator(_loopback)]
HttpUrl = Annotated[str, AfterValidator(_http_url)]
MqttUrl = Annotated[str, AfterValidator(_mqtt_url)]
TopicLevel = Annotated[str, AfterValidator(_topic_level)]
IceUrl = Annotated[str, AfterValidator(_ice_url)]
Language = Annotated[str, AfterValidator(_language)]
Threads = Annotated[int, Field(ge=1, le=256)]
Seconds = Annotated[float, Field(gt=0, le=3600)]
Milliseconds = Annotated[int, Field(ge=0, le=10_000)]
Kilobits = Annotated[int, Field(ge=50, le=20_000)]
Probability = Annotated[float, Field(ge=0, le=1)]
Side = Annotated[int, Field(ge=64, le=1920, multiple_of=2)]
"""Pixels; even, because video is sent with halved colour resolution."""
