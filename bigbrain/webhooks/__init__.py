"""Webhooks: who may call them and what comes with a call.

    from bigbrain import Brain, Webhook
    from bigbrain.webhooks import github_signature

    brain.add_trigger(Webhook("push", verify=github_signature(os.environ["GITHUB_SECRET"])) >> on_push)

What is verified are the bytes as they came, before anything in them is parsed.
"""

from __future__ import annotations

from bigbrain.webhooks.deliveries import Delivery as Delivery
from bigbrain.webhooks.deliveries import Proof as Proof
from bigbrain.webhooks.schemes import github_signature as github_signature
from bigbrain.webhooks.schemes import plain_hmac as plain_hmac
from bigbrain.webhooks.schemes import slack_signature as slack_signature
from bigbrain.webhooks.schemes import standard_webhooks as standard_webhooks
from bigbrain.webhooks.schemes import stripe_signature as stripe_signature
from bigbrain.webhooks.standard import signed as signed
from bigbrain.webhooks.verifiers import Verifier as Verifier
