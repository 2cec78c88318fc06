from __future__ import annotations

import re
from ipaddress import ip_network
from pathlib import Path

import pytest

from bigbrain.errors import WiringError
from bigbrain.settings import Limits, Settings, broker_url, masked_url


def test_an_empty_environment_gives_the_defaults() -> None:
    settings = Settings.read({})

    assert settings == Settings()
    assert settings.data == Path(".bigbrain")
    assert settings.limits == Limits(
        max_body=33554432, max_messages=10000, max_tools=512, max_depth=64, max_streams=2000
    )


def test_every_variable_is_read() -> None:
    settings = Settings.read(
        {
            "BIG_BRAIN_APP": "samples.jarvis:brain",
            "BIG_BRAIN_REDIS_URL": "redis://10.0.0.1:6379/3",
            "BIG_BRAIN_DATA": "/var/lib/brain",
            "BIG_BRAIN_KEYS": "one, two,,",
            "BIG_BRAIN_TRUSTED_PROXIES": "127.0.0.1, 10.0.0.0/8,::1",
            "BIG_BRAIN_API_KEY": "sk-1",
            "BIG_BRAIN_BASE_URL": "http://127.0.0.1:9000/v1",
            "BIG_BRAIN_MODEL": "gpt-4o-mini",
            "BIG_BRAIN_ANTHROPIC_API_KEY": "sk-2",
            "BIG_BRAIN_ANTHROPIC_BASE_URL": "http://127.0.0.1:9001",
            "BIG_BRAIN_TELEMETRY": "otlp",
            "BIG_BRAIN_OTLP_ENDPOINT": "http://127.0.0.1:4317",
            "BIG_BRAIN_LOG": "JSON",
            "BIG_BRAIN_QUEUE": "tests.queues:Inline",
            "PROMETHEUS_MULTIPROC_DIR": "/run/metrics",
            "BIG_BRAIN_METRICS_PORT": "10.0.0.2:9100",
            "BIG_BRAIN_CORS": "https://chat.example/, http://localhost:3000",
            "BIG_BRAIN_HEARTBEAT": "2.5",
            "BIG_BRAIN_KEEP": "60",
            "BIG_BRAIN_MAX_BODY": "1000",
            "BIG_BRAIN_MAX_MESSAGES": "10",
            "BIG_BRAIN_MAX_TOOLS": "5",
            "BIG_BRAIN_MAX_DEPTH": "4",
            "BIG_BRAIN_MAX_STREAMS": "3",
        }
    )

    assert settings == Settings(
        app="samples.jarvis:brain",
        redis_url="redis://10.0.0.1:6379/3",
        data=Path("/var/lib/brain"),
        keys=("one", "two"),
        trusted_proxies=(ip_network("127.0.0.1"), ip_network("10.0.0.0/8"), ip_network("::1")),
        api_key="sk-1",
        base_url="http://127.0.0.1:9000/v1",
        model="gpt-4o-mini",
        anthropic_api_key="sk-2",
        anthropic_base_url="http://127.0.0.1:9001",
        telemetry="otlp",
        otlp_endpoint="http://127.0.0.1:4317",
        log="json",
        queue="tests.queues:Inline",
        metrics=Path("/run/metrics"),
        metrics_port="10.0.0.2:9100",
        cors=("https://chat.example", "http://localhost:3000"),
        heartbeat=2.5,
        keep=60.0,
        limits=Limits(max_body=1000, max_messages=10, max_tools=5, max_depth=4, max_streams=3),
    )


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("REDIS_URL", "localhost:6379", "redis://127.0.0.1:6379/0"),
        ("REDIS_URL", "redis://", "redis://127.0.0.1:6379/0"),
        ("BASE_URL", "api.openai.com/v1", "https://api.example.com/v1"),
        ("OTLP_ENDPOINT", "ftp://host", "https://api.example.com/v1"),
        ("TRUSTED_PROXIES", "10.0.0.1/8", "`127.0.0.1, 10.0.0.0/8`"),
        ("TRUSTED_PROXIES", "nginx", "`127.0.0.1, 10.0.0.0/8`"),
        ("LOG", "xml", "`text` or `json`"),
        ("TELEMETRY", "yes", "`stdout` or `otlp`"),
        ("QUEUE", "workers", "`module:attribute`"),
        ("METRICS_PORT", "metrics", "a port such as `9100`"),
        ("METRICS_PORT", "127.0.0.1:70000", "a port such as `9100`"),
        ("CORS", "chat.example", "https://chat.example.com"),
        ("CORS", "https://chat.example/path", "https://chat.example.com"),
        ("HEARTBEAT", "0", "seconds above 0"),
        ("KEEP", "-1", "seconds above 0"),
        ("HEARTBEAT", "soon", "seconds above 0"),
        ("MAX_BODY", "32MB", "a whole number above 0"),
        ("MAX_DEPTH", "0", "a whole number above 0"),
        ("MAX_STREAMS", "-1", "a whole number above 0"),
    ],
)
def test_a_bad_value_names_its_variable_and_the_remedy(name: str, value: str, remedy: str) -> None:
    with pytest.raises(WiringError) as caught:
        Settings.read({f"BIG_BRAIN_{name}": value})

    assert f"`BIG_BRAIN_{name}`" in str(caught.value)
    assert remedy in str(caught.value)


def test_all_bad_values_are_told_at_once() -> None:
    with pytest.raises(WiringError) as caught:
        Settings.read({"BIG_BRAIN_LOG": "xml", "BIG_BRAIN_MAX_BODY": "x", "BIG_BRAIN_TELEMETRY": "otlp"})

    assert len(caught.value.faults) == 3


def test_a_blank_variable_counts_as_not_set() -> None:
    assert Settings.read({"BIG_BRAIN_LOG": " ", "BIG_BRAIN_DATA": "", "BIG_BRAIN_MAX_BODY": ""}) == Settings()


SECRETS = {
    "BIG_BRAIN_KEYS": "canary-1",
    "BIG_BRAIN_API_KEY": "canary-2",
    "BIG_BRAIN_ANTHROPIC_API_KEY": "canary-3://x",
    "BIG_BRAIN_REDIS_URL": "redis://me:canary-4@127.0.0.1:6379/0",
    "BIG_BRAIN_BASE_URL": "http://me:canary-5@127.0.0.1/v1",
    "BIG_BRAIN_OTLP_ENDPOINT": "http://me:canary-6@127.0.0.1:4317",
}


def test_what_is_shown_holds_no_secret() -> None:
    shown = list(Settings.read(SECRETS).describe())

    assert "canary" not in str(shown)
    assert ("BIG_BRAIN_REDIS_URL", "redis://me:***@127.0.0.1:6379/0") in shown
    assert ("BIG_BRAIN_KEYS", "1 set") in shown
    assert ("BIG_BRAIN_API_KEY", "***") in shown
    assert ("BIG_BRAIN_MAX_TOOLS", "512") in shown


def test_a_repr_holds_no_secret() -> None:
    assert "canary" not in repr(Settings.read(SECRETS))


def test_a_fault_holds_no_secret() -> None:
    with pytest.raises(WiringError) as caught:
        Settings.read({"BIG_BRAIN_REDIS_URL": "http://:canary@h", "BIG_BRAIN_BASE_URL": "ftp://:canary@h"})

    assert "canary" not in str(caught.value)


def test_every_variable_is_explained_in_the_source() -> None:
    source = (Path(__file__).parents[1] / "bigbrain" / "settings.py").read_text()

    explained = set(re.findall(r'"""`([A-Z_]+)`:', source))
    assert {name for name, _ in Settings().describe()} == explained


@pytest.mark.parametrize(
    ("url", "broker"),
    [
        ("redis://:pw@127.0.0.1:6379/2", "redis://:pw@127.0.0.1:6379/2"),
        ("rediss://host/0", "rediss://host/0"),
        ("unix:///run/a%20b/redis.sock?db=3", "redis+socket:///run/a%20b/redis.sock?virtual_host=3"),
        ("unix:///run/redis.sock", "redis+socket:///run/redis.sock?virtual_host=0"),
        ("unix://me:pw@/run/redis.sock", "redis+socket://me:pw@/run/redis.sock?virtual_host=0"),
    ],
)
def test_a_broker_url_is_celerys_form_of_the_same_address(url: str, broker: str) -> None:
    assert broker_url(url) == broker


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://127.0.0.1/0", "redis://127.0.0.1/0"),
        ("unix:///run/redis.sock?db=0", "unix:///run/redis.sock?db=0"),
        ("redis://:pw@127.0.0.1:6379/0", "redis://:***@127.0.0.1:6379/0"),
        ("redis://127.0.0.1/0?password=pw", "redis://127.0.0.1/0?***"),
    ],
)
def test_a_masked_url_keeps_the_place_and_drops_the_password(url: str, shown: str) -> None:
    assert masked_url(url) == shown
