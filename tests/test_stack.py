from __future__ import annotations

import re
from pathlib import Path

import pytest

from bigbrain import stack
from bigbrain.stack import Address, Size

ROOT = Path(__file__).parents[1]


def test_the_procfile_says_the_same() -> None:
    lines = re.findall(r"^(\w+): (.+)$", (ROOT / "Procfile").read_text(), re.MULTILINE)

    assert {name: command.split() for name, command in lines} == {
        "web": stack.web(),
        "worker": stack.worker(),
        "cpu": stack.cpu_worker(),
        "beat": stack.beat(),
    }


def test_gunicorn_finds_its_settings_where_the_procfile_says() -> None:
    assert (ROOT / stack.GUNICORN_CONF).is_file()


def test_a_small_deployment_is_one_of_each_and_ends_the_web_side_first() -> None:
    first, second = stack.deployment(Address(), Size())

    assert first == {"web": stack.web(address=Address(), processes=1)}
    assert second == {"io-1": stack.worker(1), "beat": stack.beat()}


def test_a_large_deployment_names_each_worker_and_tells_flower_of_their_work() -> None:
    first, second = stack.deployment(Address(), Size(web=4, workers=2, cpu_workers=2, cpu=3, flower=True))

    assert first["web"][-3:] == ["--workers", "4", "web.wsgi:app"]
    assert list(second) == ["io-1", "io-2", "cpu-1", "cpu-2", "beat", "flower"]
    assert "io-2@%h" in second["io-2"]
    assert "cpu-2@%h" in second["cpu-2"]
    assert second["cpu-2"][-3:] == ["-Q", "cpu", "-E"]
    assert second["cpu-2"][second["cpu-2"].index("-c") + 1] == "3"
    assert "--address=127.0.0.1" in second["flower"]


def test_a_cpu_worker_has_as_many_processes_as_cores_by_default() -> None:
    _, second = stack.deployment(Address(), Size(cpu=None))

    assert "-c" not in second["cpu-1"]


@pytest.mark.parametrize(
    ("host", "bind", "url", "loopback"),
    [
        ("127.0.0.1", "127.0.0.1:8080", "http://127.0.0.1:8080", True),
        ("127.9.9.9", "127.9.9.9:8080", "http://127.9.9.9:8080", True),
        ("localhost", "localhost:8080", "http://localhost:8080", True),
        ("::1", "[::1]:8080", "http://[::1]:8080", True),
        ("0.0.0.0", "0.0.0.0:8080", "http://127.0.0.1:8080", False),
        ("::", "[::]:8080", "http://[::1]:8080", False),
        ("192.168.1.5", "192.168.1.5:8080", "http://192.168.1.5:8080", False),
        ("brain.example.com", "brain.example.com:8080", "http://brain.example.com:8080", False),
        ("localhost.example.com", "localhost.example.com:8080", "http://localhost.example.com:8080", False),
    ],
)
def test_an_address_knows_who_reaches_it(host: str, bind: str, url: str, loopback: bool) -> None:
    address = Address(host)

    assert (address.bind, address.local_url, address.loopback) == (bind, url, loopback)
