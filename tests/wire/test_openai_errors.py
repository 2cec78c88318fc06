"""OpenAI's errors, as servers write them and as we do."""

from __future__ import annotations

import json

import pytest

from bigbrain.errors import (
    ContextTooLong,
    ModelBroke,
    ModelBusy,
    ModelError,
    ModelOverloaded,
    ModelRefused,
    ModelTimeout,
)
from bigbrain.events import Failed
from bigbrain.wire.openai_errors import read_error, read_error_object, write_error


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, "{}", ModelRefused),
        (401, "{}", ModelRefused),
        (403, "{}", ModelRefused),
        (404, "{}", ModelRefused),
        (409, "{}", ModelRefused),
        (422, "{}", ModelRefused),
        (400, '{"error":{"code":"context_length_exceeded"}}', ContextTooLong),
        (400, "This model's maximum context length is 8192 tokens.", ContextTooLong),
        (400, "the request exceeds the available context size", ContextTooLong),
        (500, "Trying to keep the first 5000 tokens when context the overflows", ContextTooLong),
        (408, "", ModelTimeout),
        (504, "", ModelTimeout),
        (429, "slow down", ModelBusy),
        (429, '{"error":{"code":"insufficient_quota"}}', ModelRefused),
        (503, "", ModelOverloaded),
        (529, "", ModelOverloaded),
        (500, "<html>", ModelBroke),
        (502, "", ModelBroke),
        (302, "", ModelBroke),
    ],
)
def test_a_status_means_one_error(status: int, body: str, kind: type[ModelError]) -> None:
    error = read_error(status, {}, body.encode())

    assert type(error) is kind
    assert str(error) == f"the model's server answered {status}: {body}"


def test_only_the_beginning_of_a_long_body_is_kept() -> None:
    assert len(str(read_error(500, {}, b"x" * 5000))) < 600


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500", "retry-after": "7"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_a_time_to_wait_is_read_where_it_can_be_understood(headers: dict[str, str], wait: float | None) -> None:
    assert read_error(429, headers, b"").retry_after == wait


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "x", "type": "server_error"}, ModelBroke),
        ({"message": "x", "type": "rate_limit_error", "code": "overloaded"}, ModelBusy),
        ({"message": "x", "code": 429}, ModelBusy),
        ({"message": "x", "code": 503}, ModelOverloaded),
        ({"message": "x", "type": "overloaded_error"}, ModelOverloaded),
        ({"message": "x", "code": "context_length_exceeded"}, ContextTooLong),
        ({"message": "x", "type": "insufficient_quota"}, ModelRefused),
        ({"message": "x", "type": "timeout"}, ModelTimeout),
        ("something", ModelBroke),
        (["odd"], ModelBroke),
    ],
)
def test_an_error_in_mid_stream_means_one_error(error: object, kind: type[ModelError]) -> None:
    assert type(read_error_object(error)) is kind


@pytest.mark.parametrize(
    ("failed", "status", "headers"),
    [
        (Failed("invalid_request", "m", 400, param="model"), 400, {"x-should-retry": "false"}),
        (Failed("run_cancelled", "m", 499), 499, {"x-should-retry": "false"}),
        (Failed("model_overloaded", "m", 529, True), 503, {"x-should-retry": "true"}),
        (Failed("model_busy", "m", 429, True), 429, {"x-should-retry": "true", "retry-after": "1"}),
        (Failed("model_busy", "m", 429, True, 3600.0), 429, {"x-should-retry": "true", "retry-after": "30"}),
        (Failed("run_interrupted", "m", 503, True, 0.2), 503, {"x-should-retry": "true", "retry-after": "1"}),
    ],
)
def test_an_error_is_written_with_what_clients_obey(failed: Failed, status: int, headers: dict[str, str]) -> None:
    sent, got, _ = write_error(failed, "run_1")

    assert (sent, got) == (status, {**headers, "x-request-id": "run_1"})


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "server_error"),
        (504, "server_error"),
    ],
)
def test_the_body_has_the_shape_that_sdks_read(status: int, kind: str) -> None:
    _, _, body = write_error(Failed("a_code", "a sentence", status, param="p"), "")

    assert json.loads(json.dumps(body)) == {
        "error": {
            "message": "a sentence",
            "type": kind,
            "param": "p",
            "code": "rate_limit_exceeded" if status == 429 else "a_code",
        }
    }
