"""Each sender's signatures: the genuine are let in, all others are refused, and what tells a repetition is known."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable

import pytest

from bigbrain.errors import BadSignature, WiringError
from bigbrain.webhooks import (
    Proof,
    Verifier,
    github_signature,
    plain_hmac,
    slack_signature,
    standard_webhooks,
    stripe_signature,
)
from bigbrain.webhooks.deliveries import Delivery, flattened
from tests.webhooks.senders import GITHUB, PLAIN, SENDERS, SLACK, STANDARD, STRIPE, TIMED, TIMED_SENDERS, Sender

NOW = 1_780_000_000
NOT_TEXT = b"\xff\xfe\x00{\r\n"
FORM = b"payload=%7B%22a%22%3A1%7D"
ODD = b'{ "b":1.0,\t"a":"\\u00e9" , "b":2}'

each_sender = pytest.mark.parametrize("sender", SENDERS, ids=lambda sender: sender.name)
each_timed_sender = pytest.mark.parametrize("sender", TIMED_SENDERS, ids=lambda sender: sender.name)


def delivery(body: bytes, headers: dict[str, str]) -> Delivery:
    return Delivery(body, flattened(headers.items()))


def prove(verifier: Verifier, body: bytes, headers: dict[str, str], now: float = NOW) -> Proof:
    return verifier.prove(delivery(body, headers), now)


def refused(verifier: Verifier, body: bytes, headers: dict[str, str], now: float = NOW) -> str:
    """What is said of a delivery that is refused."""
    with pytest.raises(BadSignature) as found:
        prove(verifier, body, headers, now)
    assert found.value.status == 401
    return found.value.public


@each_sender
@pytest.mark.parametrize(
    "body", [b"", FORM, ODD, ODD + b"\r\n", NOT_TEXT], ids=["empty", "form", "odd", "crlf", "bytes"]
)
def test_a_genuine_delivery_is_let_in_whatever_its_bytes(sender: Sender, body: bytes) -> None:
    prove(sender.verifier(sender.secret), body, sender.headers(NOW, body=body))


@each_sender
@pytest.mark.parametrize("write", [str.lower, str.upper])
def test_the_case_of_a_headers_name_is_nothing(sender: Sender, write: Callable[[str], str]) -> None:
    headers = {write(name): value for name, value in sender.headers(NOW).items()}

    prove(sender.verifier(sender.secret), sender.body, headers)


@each_sender
def test_a_forged_delivery_is_refused(sender: Sender) -> None:
    verifier, headers = sender.verifier(sender.secret), sender.headers(NOW)

    assert "does not match" in refused(verifier, sender.body, sender.headers(NOW, secret=sender.other))
    assert "does not match" in refused(verifier, sender.body + b" ", headers)
    assert "does not match" in refused(verifier, sender.body[:-1], headers)
    assert "does not match" in refused(verifier, b"", headers)


@each_sender
def test_a_delivery_without_a_signature_is_refused(sender: Sender) -> None:
    verifier, headers = sender.verifier(sender.secret), sender.headers(NOW)
    signature = next(name for name in reversed(headers) if "sig" in name.lower())

    refused(verifier, sender.body, {})
    refused(verifier, sender.body, {**headers, signature: ""})


@each_sender
@pytest.mark.parametrize("cut", [1, 8, -1], ids=str)
def test_a_truncated_signature_is_refused(sender: Sender, cut: int) -> None:
    headers = sender.headers(NOW)
    signature = next(name for name in reversed(headers) if "sig" in name.lower())
    whole = headers[signature].partition(",v0=")[0]

    refused(sender.verifier(sender.secret), sender.body, {**headers, signature: whole[:-cut]})


@each_sender
@pytest.mark.parametrize(
    "junk", ["é", "v1", ",", "v1,", "t=,v1=", "=", "v1,é=", "\xff", "sha256=é", "v0=x y", "v1,====="]
)
def test_a_header_that_is_badly_written_is_refused_and_breaks_nothing(sender: Sender, junk: str) -> None:
    headers = sender.headers(NOW)
    for name in headers:
        spoiled = {**headers, name: junk}
        try:
            prove(sender.verifier(sender.secret), sender.body, spoiled)
        except BadSignature:
            continue
        # what is not signed may be anything
        assert name in ("X-GitHub-Delivery", "X-GitHub-Event", "X-Hub-Signature", "Idempotency-Key", "X-Delivery")


@each_timed_sender
@pytest.mark.parametrize("apart", [-301, 301, -86_400, 86_400])
def test_a_time_that_is_far_from_ours_is_refused_on_both_sides(sender: Sender, apart: int) -> None:
    said = refused(sender.verifier(sender.secret), sender.body, sender.headers(NOW + apart))

    assert "more than 300 s from ours" in said


@each_timed_sender
@pytest.mark.parametrize("apart", [-300, -2, 2, 300])
def test_a_clock_that_is_a_little_off_is_no_fault(sender: Sender, apart: int) -> None:
    prove(sender.verifier(sender.secret), sender.body, sender.headers(NOW + apart))


@each_timed_sender
def test_a_time_cannot_be_renewed_without_the_secret(sender: Sender) -> None:
    old, new = sender.headers(NOW - 9000), sender.headers(NOW)
    renewed = {name: value.replace(str(NOW - 9000), str(NOW)) for name, value in old.items()}

    assert renewed.keys() == new.keys()
    assert "does not match" in refused(sender.verifier(sender.secret), sender.body, renewed)


@each_timed_sender
@pytest.mark.parametrize("time", ["", "now", "-1780000000", "1780000000.0", "1e9", "١٧٨٠٠٠٠٠٠٠", "9" * 30, "nan"])
def test_a_time_that_is_none_is_refused(sender: Sender, time: str) -> None:
    headers = {name: value.replace(str(NOW), time) for name, value in sender.headers(NOW).items()}

    assert "no time" in refused(sender.verifier(sender.secret), sender.body, headers)


@each_sender
def test_either_of_two_secrets_may_have_signed_while_one_is_replaced(sender: Sender) -> None:
    verifier = sender.verifier(sender.other, sender.secret)

    prove(verifier, sender.body, sender.headers(NOW))
    prove(verifier, sender.body, sender.headers(NOW, secret=sender.other))


@pytest.mark.parametrize(
    ("sender", "header", "join"), [(STANDARD, "webhook-signature", " "), (STRIPE, "Stripe-Signature", ",")]
)
def test_a_sender_that_replaces_its_secret_signs_with_both(sender: Sender, header: str, join: str) -> None:
    old, new = sender.headers(NOW, secret=sender.other), sender.headers(NOW)
    both = {**new, header: f"{old[header]}{join}{new[header]}"}

    prove(sender.verifier(sender.secret), sender.body, both)


@pytest.mark.parametrize(
    ("sender", "first", "again"),
    [
        (STANDARD, Proof("d-1", "d-1"), {"at": NOW + 60}),
        (STRIPE, Proof("evt_1", "evt_1"), {"at": NOW + 60}),
        (SLACK, Proof("Ev1", "Ev1"), {"at": NOW + 60}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_further_try_that_is_signed_anew_is_the_same_delivery(
    sender: Sender, first: Proof, again: dict[str, int]
) -> None:
    verifier = sender.verifier(sender.secret)

    assert prove(verifier, sender.body, sender.headers(NOW)) == first
    assert prove(verifier, sender.body, sender.headers(**again)) == first


@pytest.mark.parametrize("sender", [GITHUB, PLAIN, TIMED], ids=lambda sender: sender.name)
def test_where_the_id_is_not_signed_the_bytes_tell_a_repetition(sender: Sender) -> None:
    verifier = sender.verifier(sender.secret)
    first = prove(verifier, sender.body, sender.headers(NOW))
    renamed = prove(verifier, sender.body, sender.headers(NOW, id="d-2"))
    other = prove(verifier, sender.body + b" ", sender.headers(NOW, body=sender.body + b" "))

    assert (first.id, renamed.id) == ("d-1", "d-2")
    assert first.mark == renamed.mark != other.mark


@pytest.mark.parametrize("body", [b"token=x&command=%2Fbrain", b"[1]", b'{"event_id":7}', NOT_TEXT])
def test_a_slack_command_has_no_id_and_is_told_by_its_signature(body: bytes) -> None:
    verifier = slack_signature(SLACK.secret)
    first = prove(verifier, body, SLACK.headers(NOW, body=body))
    later = prove(verifier, body, SLACK.headers(NOW + 1, body=body))

    assert first.id == later.id == ""
    assert first.mark != later.mark


def test_where_repetitions_are_welcome_nothing_marks_a_delivery() -> None:
    proof = prove(plain_hmac(PLAIN.secret, repeats=True), PLAIN.body, PLAIN.headers(NOW))

    assert proof == Proof("d-1", "")


@pytest.mark.parametrize("algorithm", ["sha1", "sha512", "blake2b"])
def test_a_plain_signature_may_use_another_algorithm(algorithm: str) -> None:
    signature = hmac.digest(b"k", b"body", algorithm).hex()

    prove(plain_hmac("k", algorithm=algorithm), b"body", {"X-Signature": signature})
    refused(plain_hmac("k"), b"body", {"X-Signature": signature})


def test_githubs_old_signature_alone_is_not_enough() -> None:
    headers = GITHUB.headers(NOW)
    del headers["X-Hub-Signature-256"]

    refused(github_signature(GITHUB.secret), GITHUB.body, headers)


def test_stripes_test_scheme_is_not_believed() -> None:
    headers = {name: value.replace("v1=", "v0=") for name, value in STRIPE.headers(NOW).items()}

    refused(stripe_signature(STRIPE.secret), STRIPE.body, headers)


def test_the_headers_may_have_the_names_from_before_there_was_a_standard() -> None:
    headers = {name.replace("webhook-", "svix-"): value for name, value in STANDARD.headers(NOW).items()}
    mixed = {**STANDARD.headers(NOW), "webhook-signature": "", "svix-signature": headers["svix-signature"]}

    assert prove(standard_webhooks(STANDARD.secret), STANDARD.body, headers) == Proof("d-1", "d-1")
    refused(standard_webhooks(STANDARD.secret), STANDARD.body, mixed)


def test_a_dot_cannot_move_a_part_of_the_time_into_the_id() -> None:
    body = f"{NOW}.rest".encode()
    signed = STANDARD.headers(NOW - 9000, body=body)
    moved = {**signed, "webhook-id": f"d-1.{NOW - 9000}", "webhook-timestamp": str(NOW)}

    assert "a dot" in refused(standard_webhooks(STANDARD.secret), b"rest", moved)


def test_the_examples_in_the_senders_own_documentation_are_genuine() -> None:
    """The published examples: Standard Webhooks' libraries, GitHub's page and Slack's page."""
    standard = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    github = {"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}
    slack = {
        "X-Slack-Request-Timestamp": "1531420618",
        "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    }
    command = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
        b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
        b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
        b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )

    prove(
        standard_webhooks("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        b'{"test": 2432232314}',
        standard,
        now=1614265330,
    )
    prove(github_signature("It's a Secret to Everybody"), b"Hello, World!", github)
    prove(slack_signature("8f742231b10e8888abcd99yyyzzz85a5"), command, slack, now=1531420618)


@pytest.mark.parametrize(
    "factory",
    [standard_webhooks, stripe_signature, github_signature, slack_signature, plain_hmac],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("secrets", [(), ("",), ("good", " ")])
def test_an_empty_secret_is_a_fault_because_anybody_has_it(
    factory: Callable[..., Verifier], secrets: tuple[str, ...]
) -> None:
    with pytest.raises(WiringError, match="has an empty secret or none"):
        factory(*secrets)


@pytest.mark.parametrize("secret", ["whsec_", "whsec_é", "whsec_a!"])
def test_a_standard_secret_that_is_cut_or_garbled_is_a_fault(secret: str) -> None:
    with pytest.raises(WiringError, match="whsec_"):
        standard_webhooks(secret)


@pytest.mark.parametrize("key", [b"0123456789", b"0123456789a", b"0123456789ab"])
def test_a_standard_secret_may_lack_its_padding_or_be_any_text(key: bytes) -> None:
    padded = f"whsec_{base64.b64encode(key).decode()}"
    headers = STANDARD.headers(NOW, secret=padded)

    for secret in (padded, padded.rstrip("="), key.decode()):
        prove(standard_webhooks(secret), STANDARD.body, headers)


@pytest.mark.parametrize(
    "fields", [{"algorithm": "md5"}, {"algorithm": "shake_128"}, {"algorithm": "x"}, {"encoding": "octal"}]
)
def test_a_plain_signature_that_cannot_be_made_is_a_fault(fields: dict[str, str]) -> None:
    with pytest.raises(WiringError, match=next(iter(fields))):
        plain_hmac("k", **fields)


@each_sender
def test_a_secret_does_not_show_when_a_verifier_is_printed(sender: Sender) -> None:
    assert sender.secret.removeprefix("whsec_") not in repr(sender.verifier(sender.secret))
