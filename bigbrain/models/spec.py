"""Which model is asked, and how: frozen values, and references to them by tag.

A `Model` says everything about a call but the conversation; `FixedModel` (in
`fixed.py`) answers without any server. `model("cheap")` is a reference that the
brain's registry resolves when the brain is built. Changing means a copy: `having`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Literal, TypedDict, Unpack, get_args

from msgspec.structs import replace as replace_request

from bigbrain.errors import WiringError
from bigbrain.messages import JSON, Request, Think
from bigbrain.models.asks import Asks

Provider = Literal["openai", "anthropic"]
"""The protocol that a model's server speaks; `openai` is also every OpenAI-compatible server."""

Api = Literal["chat", "responses"]
"""Which of OpenAI's protocols: chat completions, which all compatible servers speak, or responses."""


class Manner(TypedDict, total=False):
    """How an answer is wanted: what one use sets of these holds for the model's fallbacks as well."""

    temperature: float | None
    max_tokens: int | None
    top_p: float | None
    top_k: int | None
    stop: tuple[str, ...]
    think: Think | None


class Knobs(Manner, total=False):
    """What one use of a model may set otherwise."""

    name: str
    provider: Provider
    api: Api
    base_url: str | None
    api_key: str | None
    timeout: float
    retries: int
    pause: float
    max_concurrent: int | None
    fallbacks: Sequence[Model | ModelRef | Asks]
    extra: Mapping[str, JSON]


@dataclass(frozen=True)
class Model:
    """A model at a provider, and how it is asked; None leaves a knob to the provider.

    Raises `WiringError` when a value cannot be meant.
    """

    name: str
    """As the provider spells it."""
    _: KW_ONLY
    provider: Provider = "openai"
    api: Api = "chat"
    """Which of OpenAI's protocols is spoken; `responses` also carries a model's sealed thoughts from turn to turn."""
    base_url: str | None = None
    """The server's address, for `openai` with its `/v1`; None: the environment's, else the provider's own."""
    api_key: str | None = field(default=None, repr=False)
    """None: the environment's."""
    timeout: float = 60.0
    """Seconds that the server may be silent, before its answer and between two pieces of it."""
    retries: int = 2
    """How often a call is made again that failed before any of its answer was used."""
    pause: float = 0.5
    """Seconds before the first retry, doubled for each further one up to 8, unless the server says when."""
    max_concurrent: int | None = None
    """How many calls of this model, whatever its other knobs, may be under way in one process (`gates.py`); others wait."""
    fallbacks: Sequence[Model | ModelRef | Asks] = field(default=(), hash=False)
    """Who is asked instead, one after the other, when this model fails before any of its answer was used (`fallbacks.py`)."""
    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    think: Think | None = None
    prefill: bool | Mapping[str, JSON] = field(default=False, hash=False)
    """Whether the server goes on with an answer whose beginning is the last message, as Anthropic's older models,
    llama.cpp and Mistral do; a mapping holds the fields that it wants then, such as vLLM's `{"continue_final_message": True,
    "add_generation_prompt": False}`. A durable flow that lost its worker has the answer gone on with where the client is."""
    extra: Mapping[str, JSON] = field(default_factory=dict, hash=False)
    """Further top-level fields of the provider's own request, such as `{"seed": 7}`."""

    def __post_init__(self) -> None:
        if isinstance(self.fallbacks, list):
            object.__setattr__(self, "fallbacks", tuple(self.fallbacks))  # equal, however they were given
        faults = tuple(_faults(self))
        if faults:
            raise WiringError(*faults)

    def having(self, **knobs: Unpack[Knobs]) -> Model:
        """The same model, asked otherwise."""
        return replace(self, **knobs)


def _faults(model: Model) -> Iterator[str]:
    if not model.name:
        yield "a model needs a `name`"
    if model.provider not in get_args(Provider):
        yield f"model `{model.name}`: no provider `{model.provider}`; there are `openai` and `anthropic`"
    if model.api not in get_args(Api):
        yield f"model `{model.name}`: no api `{model.api}`; there are `chat` and `responses`"
    if model.api != "chat" and model.provider != "openai":
        yield f"model `{model.name}`: `api` is of `openai` only; leave it out"
    if not 0 < model.timeout < float("inf"):
        yield f"model `{model.name}`: `timeout` is {model.timeout!r}; give seconds above 0"
    if model.pause < 0:
        yield f"model `{model.name}`: `pause` is {model.pause!r}; give seconds, 0 or more"
    if model.retries < 0:
        yield f"model `{model.name}`: `retries` is {model.retries!r}; give 0 or more"
    if model.max_tokens is not None and model.max_tokens < 1:
        yield f"model `{model.name}`: `max_tokens` is {model.max_tokens!r}; give 1 or more"
    if model.max_concurrent is not None and model.max_concurrent < 1:
        yield f"model `{model.name}`: `max_concurrent` is {model.max_concurrent!r}; give 1 or more, or None"
    if not isinstance(model.fallbacks, tuple):
        yield f"model `{model.name}`: `fallbacks` is {model.fallbacks!r}; give a list"
        return
    for fallback in model.fallbacks:
        if not isinstance(fallback, Model | ModelRef) and not callable(getattr(fallback, "ask", None)):
            yield f"model `{model.name}`: its fallback {fallback!r} is no model; give a `Model` or `model(…)`"


@dataclass(frozen=True)
class ModelRef:
    """A model by its tags, to be looked up when the brain is built; without tags, whatever model would be asked otherwise."""

    tags: tuple[str, ...] = ()
    knobs: Knobs = field(default_factory=Knobs, hash=False)


def model(*tags: str, **knobs: Unpack[Knobs]) -> ModelRef:
    """Refer to the first registered model that has all these tags, with some knobs set otherwise for this use."""
    return ModelRef(tags, knobs)


PASSED_ON = frozenset({"logprobs", "top_logprobs"})
"""Further fields of a provider's own request that a request may set, where it is asked in that provider's protocol."""


def compose(model: Model, request: Request) -> Request:
    """What is sent: the conversation, tools and shape of `request`, asked as `model` says.

    Of the request's own knobs three count, because they ask what the answer may be and not how it is found: its
    token limit, the smaller one of both, its stop texts, beside the model's, and whether the tokens' probabilities are told.
    All others are the model's: what a client sets is input to a brain, never an override.
    """
    told = {name: value for name, value in request.extra.get(model.provider, {}).items() if name in PASSED_ON}
    limits = [limit for limit in (model.max_tokens, request.max_tokens) if limit is not None]
    return replace_request(
        request,
        model=model.name,
        stream=True,
        max_tokens=min(limits, default=None),
        temperature=model.temperature,
        top_p=model.top_p,
        top_k=model.top_k,
        stop=(*model.stop, *request.stop),
        think=model.think,
        user="",
        extra={model.provider: {**told, **model.extra}} if told or model.extra else {},
    )
