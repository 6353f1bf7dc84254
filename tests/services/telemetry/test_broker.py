"""The connection to a real broker: lost, found again, and never in anybody's way."""

import asyncio
import itertools
import json
import logging
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from aiomqtt import TLSParameters
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from services.telemetry.broker import Address, Broker, Message, growing_waits
from tests.services.telemetry.mosquitto import Way, body, listening, mosquitto, program, told

WILL = Message("visavis/lobby/node/kiosk/state", b'{"state": "offline"}')


def event(number: int) -> Message:
    return Message("visavis/lobby/alarm", json.dumps({"number": number}).encode())


def state(name: str) -> Message:
    return Message(WILL.topic, json.dumps({"state": name}).encode())


def to(port: int, **more: object) -> Broker:
    return Broker(Address("127.0.0.1", port, tls=False), WILL, **more)  # type: ignore[arg-type]


def ours() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("mqtt")]


async def test_what_is_published_arrives_in_order_and_as_json(tmp_path: Path) -> None:
    with mosquitto(tmp_path) as port:
        async with listening(port) as client, to(port) as broker:
            for number in range(20):
                broker.publish(event(number))
            for number in range(20):
                message = await told(client)
                assert body(message) == {"number": number}
            assert broker.connected
            assert message.qos == 1
            assert not message.retain
            assert message.properties is not None
            assert message.properties.ContentType == "application/json"


async def test_what_is_left_is_told_before_the_end_and_no_thread_survives(tmp_path: Path) -> None:
    before = threading.active_count()
    with mosquitto(tmp_path) as port:
        async with listening(port) as client:
            async with to(port) as broker:
                broker.publish(event(1))
                broker.retain(state("stopped"))
            assert body(await told(client)) == {"number": 1}
            assert body(await told(client)) == {"state": "stopped"}, "last of all"
        assert ours() == []
        async with listening(port) as late:
            assert (await told(late, state="stopped")).retain, "the farewell is kept, and no last will came"
    assert threading.active_count() <= before + 1, "the default executor's, of the listeners"


async def test_the_newest_are_kept_while_the_broker_is_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with mosquitto(tmp_path) as port:
        way = Way(port)
        async with listening(port) as client, to(way.port, kept=3) as broker:
            for number in range(5):
                broker.publish(event(number))
            broker.retain(state("old"))
            broker.retain(state("new"))
            await way.open()
            assert body(await told(client)) == {"state": "new"}
            assert [body(await told(client))["number"] for _ in range(3)] == [2, 3, 4]
            assert broker.dropped == 2
        await way.close()
    assert "3 messages were kept for it, 2 were dropped" in caplog.text


async def test_a_lost_broker_is_found_again_and_told_what_it_missed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with mosquitto(tmp_path) as port:
        way = Way(port)
        await way.open()
        async with listening(port) as client, to(way.port) as broker:
            broker.retain(state("online"))
            await told(client, state="online")
            await way.close()
            await told(client, state="offline")  # the last will: we are idle, and it is noticed all the same
            broker.publish(event(1))
            broker.publish(event(2))
            await way.open()
            assert body(await told(client)) == {"state": "online"}, "the state is told anew"
            assert [body(await told(client))["number"] for _ in range(2)] == [1, 2]
        await way.close()
    assert caplog.text.count("is away") == 1, "an absence is told once"


async def test_a_restarted_broker_learns_the_state_again(tmp_path: Path) -> None:
    with mosquitto(tmp_path) as port:
        broker = to(port)
        await broker.__aenter__()
        broker.retain(state("online"))
        async with listening(port) as client:
            await told(client, state="online")
    with mosquitto(tmp_path, port=port):
        async with listening(port) as client:
            await told(client, state="online")
        await broker.__aexit__(None, None, None)


async def test_a_broker_that_does_not_answer_holds_no_thread_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reached, answer = threading.Event(), threading.Event()

    def create_connection(*arguments: object, **options: object) -> socket.socket:
        reached.set()
        answer.wait()
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", create_connection)
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as encoding:
        loop.set_default_executor(encoding)
        async with to(1) as broker:
            await loop.run_in_executor(None, reached.wait)
            broker.publish(event(1))
            assert await loop.run_in_executor(None, lambda: "encoded") == "encoded"
            answer.set()
    assert ours() == []


async def test_a_fault_of_ours_ends_mqtt_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fault(self: Broker) -> None:
        raise KeyError("a fault")

    monkeypatch.setattr(Broker, "_stay_connected", fault)
    async with to(1) as broker:
        await asyncio.wait([broker._running])
        assert not broker.connected
        broker.publish(event(1))
        broker.retain(event(2))
    assert "MQTT has stopped by a fault of ours" in caplog.text
    assert "KeyError: 'a fault'" in caplog.text
    assert ours() == []


@pytest.fixture
def passwords(tmp_path: Path) -> Path:
    """A broker's file of who may use it: kiosk, with s3cret."""
    file = tmp_path / "passwords"
    command = [program("mosquitto_passwd"), "-b", "-c", str(file), "kiosk", "s3cret"]
    subprocess.run(command, check=True, capture_output=True)
    return file


async def test_a_name_and_a_password(
    tmp_path: Path, passwords: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with mosquitto(tmp_path, "allow_anonymous false", f"password_file {passwords}") as port:
        address = Address("127.0.0.1", port, tls=False, username="kiosk", password="s3cret")
        async with (
            listening(port, username="kiosk", password="s3cret") as client,
            Broker(address, WILL) as broker,
        ):
            broker.publish(event(1))
            await told(client, number=1)
    assert "s3cret" not in caplog.text
    assert "s3cret" not in repr(address)


async def test_tls_with_a_certificate_of_ones_own(tmp_path: Path) -> None:
    certificate, key = certified(tmp_path)
    with mosquitto(tmp_path, f"certfile {certificate}", f"keyfile {key}") as port:
        async with (
            listening(port, tls_params=TLSParameters(ca_certs=str(certificate))) as client,
            Broker(Address("127.0.0.1", port, tls=True, ca_file=certificate), WILL) as broker,
        ):
            broker.publish(event(1))
            await told(client, number=1)


def certified(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "broker")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, private = folder / "broker.pem", folder / "broker.key"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return pem, private


def test_waits_grow_up_to_a_minute() -> None:
    assert list(itertools.islice(growing_waits(), 8)) == [1, 2, 4, 8, 16, 32, 60, 60]
