"""What an author may give to verify with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bigbrain.errors import BadSignature, WiringError
from bigbrain.webhooks import Delivery, Proof, github_signature, stripe_signature
from bigbrain.webhooks.deliveries import canonical, flattened
from bigbrain.webhooks.verifiers import verifier_of


@pytest.mark.parametrize(("found", "proof"), [(True, Proof()), ("d-7", Proof("d-7", "d-7"))])
def test_a_function_of_the_delivery_says_yes_or_its_id(found: bool | str, proof: Proof) -> None:
    seen: list[Delivery] = []

    def check(delivery: Delivery) -> bool | str:
        seen.append(delivery)
        return found

    delivery = Delivery(b"\xff", {"X-Key": "k"}, "10.0.0.1")

    assert verifier_of(check).prove(delivery, 0.0) == proof
    assert seen == [delivery]


@pytest.mark.parametrize("found", [False, "", None, 1, [True]])
def test_whatever_else_a_function_says_is_a_refusal(found: object) -> None:
    check: Callable[[Delivery], object] = lambda _: found  # noqa: E731

    with pytest.raises(BadSignature):
        verifier_of(check).prove(Delivery(b""), 0.0)


def test_what_a_function_raises_lets_nobody_in() -> None:
    with pytest.raises(ZeroDivisionError):
        verifier_of(lambda _: 1 / 0 > 0).prove(Delivery(b""), 0.0)


def test_one_of_ours_is_taken_as_it_is() -> None:
    verifier = github_signature("s")

    assert verifier_of(verifier) is verifier


def test_a_scheme_without_its_secret_is_a_fault_that_names_it() -> None:
    with pytest.raises(WiringError, match=r"write `verify=stripe_signature\(secret\)`"):
        verifier_of(stripe_signature)


async def asks_elsewhere(delivery: Delivery) -> bool:
    return True


@pytest.mark.parametrize("verify", ["secret", None, 3, asks_elsewhere])
def test_what_cannot_verify_is_a_fault(verify: object) -> None:
    with pytest.raises(WiringError, match="cannot verify"):
        verifier_of(verify)


def test_headers_are_flattened_to_canonical_names_and_first_values() -> None:
    sent = [("x-sig-foo", "1"), ("X-SIG-FOO", "2"), ("ACCEPT", "a, b"), ("X-2fa-ok", "")]

    assert flattened(sent) == {"X-Sig-Foo": "1", "Accept": "a, b", "X-2fa-Ok": ""}
    assert canonical("x-github-delivery") == "X-Github-Delivery"


def test_a_header_is_found_however_its_name_is_written() -> None:
    delivery = Delivery(b"", flattened([("X-GitHub-Event", "push")]))

    assert delivery.header("x-github-event") == delivery.header("X-GITHUB-EVENT") == "push"
    assert delivery.header("X-Other") == ""
