"""How an orchestrator works: every option with its default, and what may not be meant by it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, TypedDict, get_args

from bigbrain.errors import WiringError
from bigbrain.models import Askable, Knobs, Model, ModelRef
from bigbrain.orchestrator.backends import Backend
from bigbrain.orchestrator.cancellation import Cancellation

BackendName: TypeAlias = Literal["model", "claude_code"]
OnToolError: TypeAlias = Literal["tell", "fail"]

MODEL = "gpt-4o"
"""The model that is asked outside of a brain when none is named."""

_OTHER_NAMES = {"openai": "model", "claude-code": "claude_code"}


class Wanted(TypedDict, total=False):
    """The options that may be given, all of them by name; see `Options`."""

    name: str
    backend: BackendName | Backend
    optional_prompt: str
    max_steps: int
    steps_interval: float | None
    timeout: float
    cancellation: Cancellation | None
    repairs: int
    on_tool_error: OnToolError
    model: str | Askable | ModelRef | None
    api_key: str | None
    server_url: str | None
    temperature: float | None
    max_tokens: int | None
    enable_prompt_caching: bool
    enforce_json_output: bool
    session_id: str | None
    cli_path: str


@dataclass(frozen=True, kw_only=True)
class Options:
    """What an `Orchestrator` may be told, beside its agents.

    Raises `WiringError` with everything that cannot be meant.
    """

    name: str = "orchestrator"
    """What it is called in traces, and as an agent of a flow."""
    backend: BackendName | Backend = "model"
    """Who writes the replies: a model, the local Claude Code CLI, or anything else that keeps the seam's promises."""
    optional_prompt: str = ""
    """Further instructions, behind the protocol: tone, facts, the form of the answer."""
    max_steps: int = 50
    """How often the model may be asked in one task."""
    steps_interval: float | None = None
    """Seconds to wait between two steps, for providers that limit the rate."""
    timeout: float = 60.0
    """Seconds for one question to the model, its retries included."""
    cancellation: Cancellation | None = None
    """Stops its tasks, from any thread."""
    repairs: int = 3
    """How many replies outside the protocol, one after the other, are put back to the model with their fault."""
    on_tool_error: OnToolError = "tell"
    """What a tool that raises or takes too long does: `tell` gives the error to the model, which may find another way;
    `fail` ends the task with it."""
    model: str | Askable | ModelRef | None = None
    """A name at `server_url`, a `Model` of any provider, `model("tag")` in a brain, or whatever can be asked. By default
    the model of the flow around it; outside of a brain, and beside `api_key` or `server_url`, `gpt-4o`."""
    api_key: str | None = field(default=None, repr=False)
    """The key for `server_url`; by default the environment's, see `BIG_BRAIN_API_KEY`."""
    server_url: str | None = None
    """An OpenAI-compatible server, with its `/v1`; by default the environment's, else OpenAI's own."""
    temperature: float | None = 0.0
    """None leaves it to the provider. What a `Model` says itself goes before this and `max_tokens`."""
    max_tokens: int | None = 8192
    """Tokens of one reply at most."""
    enable_prompt_caching: bool = False
    """Marks the instructions, which are the same in every step, for providers that cache only what is marked."""
    enforce_json_output: bool = False
    """Has the provider write nothing but a JSON object, also while it streams; not every server takes that."""
    session_id: str | None = None
    """For `claude_code`: the UUID of the session that is begun or gone on with."""
    cli_path: str = "claude"
    """For `claude_code`: the command, if it is not on the path. That backend takes `model` as the CLI spells it,
    `api_key` and `server_url` (Anthropic's, without `/v1`) as well; of temperature, tokens, caching and JSON the CLI
    itself decides, and `history` it knows better."""

    def __post_init__(self) -> None:
        faults = tuple(_faults(self))
        if faults:
            raise WiringError(*faults)

    @property
    def wanted_model(self) -> Askable | ModelRef:
        """The model to ask; a reference without tags is the one of whatever is around."""
        knobs = Knobs(temperature=self.temperature, max_tokens=self.max_tokens)
        match self.model:
            case None if self.api_key is None and self.server_url is None:
                return ModelRef((), {**knobs, "timeout": self.timeout})
            case None | str():
                name = MODEL if self.model is None else self.model
                asked = Model(name, base_url=self.server_url, api_key=self.api_key, timeout=self.timeout)
                return asked.having(**knobs)
            case ModelRef(tags, set_already):
                return ModelRef(tags, {**knobs, **set_already})
            case Model():
                own = self.model
                return own.having(
                    temperature=self.temperature if own.temperature is None else own.temperature,
                    max_tokens=self.max_tokens if own.max_tokens is None else own.max_tokens,
                )
            case _:
                return self.model

    @property
    def lone_model(self) -> Askable | ModelRef:
        """The model to ask outside of a brain."""
        wanted = self.wanted_model
        return Model(MODEL).having(**wanted.knobs) if isinstance(wanted, ModelRef) and not wanted.tags else wanted


def _faults(options: Options) -> Iterator[str]:
    yield from _backend_faults(options)
    if options.max_steps < 1:
        yield f"`max_steps` is {options.max_steps!r}; give 1 or more"
    if options.repairs < 0:
        yield f"`repairs` is {options.repairs!r}; give 0 or more"
    if not 0 < options.timeout < float("inf"):
        yield f"`timeout` is {options.timeout!r}; give seconds above 0"
    if options.steps_interval is not None and not 0 <= options.steps_interval < float("inf"):
        yield f"`steps_interval` is {options.steps_interval!r}; give seconds, 0 or more"
    if options.on_tool_error not in get_args(OnToolError):
        yield f"`on_tool_error` is {options.on_tool_error!r}; give `tell` or `fail`"
    if not options.name:
        yield "`name` is empty; leave it out, or give one"
    if not isinstance(options.model, str | None) and (options.api_key or options.server_url):
        yield "`api_key` and `server_url` belong to a model given by name: give them to the `Model` itself"
    if not isinstance(options.model, str | Model | ModelRef | None) and not callable(
        getattr(options.model, "ask", None)
    ):
        yield f"`model` is {options.model!r}; give a name, a `Model` or `model(…)`"


def _backend_faults(options: Options) -> Iterator[str]:
    backend = options.backend
    if not isinstance(backend, str):
        if not callable(getattr(backend, "ask", None)):
            yield f"`backend` is {backend!r}; give `model`, `claude_code` or something with `ask`"
        return
    if backend not in get_args(BackendName):
        meant = _OTHER_NAMES.get(backend)
        yield f"`backend` is `{backend}`; " + (f"it is `{meant}` here" if meant else "give `model` or `claude_code`")
    if backend == "claude_code" and not _is_uuid(options.session_id):
        yield f"`session_id` is {options.session_id!r}; `claude_code` needs a UUID, such as `str(uuid.uuid4())`"
    if backend == "claude_code" and not isinstance(options.model, str | None):
        yield f"`model` is {options.model!r}; for `claude_code` it is a name as the CLI spells it"
    if not options.cli_path:
        yield "`cli_path` is empty; leave it out, or name the command"
    if backend == "model" and options.session_id is not None:
        yield '`session_id` is for the Claude Code CLI only; give `backend="claude_code"` with it'


def _is_uuid(text: str | None) -> bool:
    try:
        return text is not None and bool(uuid.UUID(text))
    except (ValueError, AttributeError, TypeError):
        return False
