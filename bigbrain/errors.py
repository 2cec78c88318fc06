"""Every error a caller can meet, in one tree.

    BrainError
    ├── WiringError        the brain as written cannot work; found when it is built
    ├── RequestError       the caller's request is wrong
    │   ├── WireError      a field of it is (names the field)
    │   │   └── Unsupported    it asks for what its protocol knows and a brain does not give
    │   ├── TooLarge       it is over a cap
    │   ├── Unauthorized   its key is missing or unknown
    │   │   └── BadSignature   it does not prove who sent it
    │   ├── NotFound       what it names does not exist
    │   │   └── UnknownModel   a model that a strict brain does not have
    │   └── Conflict       its run id belongs to another request
    ├── Busy               this deployment is full; try again later
    ├── ServerEnding       the server that relays an answer is being restarted
    ├── ModelError         the model behind the brain failed
    │   ├── ModelRefused   it refused our key or our request
    │   │   └── ContextTooLong  the conversation does not fit it
    │   ├── ModelBusy      it is over our limits
    │   │   └── ModelOverloaded  it is over everybody's
    │   ├── ModelTimeout   it took too long
    │   └── ModelBroke     it failed, broke off or answered nonsense
    ├── SchemaError        a model's answer does not fit the shape that was asked for
    │   └── PayloadError       what a trigger carries does not
    ├── ToolError          a tool call cannot be carried out
    ├── StoreError         a brain's memory cannot keep or give a value
    ├── BudgetSpent        a run may ask no model any more
    ├── SelectError        a choice among flows cannot be followed
    └── RunError           a run cannot go on
        ├── HandlerFailed    the author's handler raised
        ├── Unstorable       a step made a value that a run cannot keep
        ├── RunInterrupted   its worker was lost and it has no durable flow
        ├── BrainChanged     the brain is another one by now
        ├── RunCancelled     somebody stopped it
        ├── TriggerError     a trigger that it reaches cannot be set
        ├── RunExpired       it is gone
        └── TaskFailed       an orchestrator's task came to no answer
            └── TaskAborted  its model gave it up

A class carries what the outside needs: `status`, the HTTP status; `code`, the
stable machine word; `retryable`, whether the same request may succeed later;
`safe`, the sentence that a client reads. The message itself may hold internal
text (an upstream's words, a path), so only `RequestError` and `Busy`, whose
messages are written for the caller, show it; all others show `safe`.
"""

from __future__ import annotations

import re


class BrainError(Exception):
    """Raised when bigbrain cannot do what was asked of it."""

    status = 500
    code = "internal_error"
    retryable = False
    safe = "The brain failed to answer."

    def __init__(self, message: str = "", *, retry_after: float | None = None, param: str | None = None) -> None:
        """message: what was wrong, with the value, and the remedy; by default the class's first sentence.

        retry_after: seconds after which a retry makes sense. param: the request's field at fault.
        """
        super().__init__(message or type(self)._sentence())
        self.retry_after = retry_after
        self.param = param

    @classmethod
    def _sentence(cls) -> str:
        return (cls.__doc__ or cls.__name__).strip().splitlines()[0]

    @property
    def public(self) -> str:
        """The sentence a client may read."""
        return self.safe


class WiringError(BrainError):
    """Raised when a brain as written cannot work; `faults` lists every fault with its place and remedy."""

    code = "wiring_error"
    safe = "The brain is not wired correctly."

    def __init__(self, *faults: str) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


class RequestError(BrainError):
    """Raised when the caller's request is wrong; its message is written for the caller."""

    status = 400
    code = "invalid_request"

    @property
    def public(self) -> str:
        return str(self)


class WireError(RequestError):
    """Raised when a field on the wire is missing, has the wrong type or an impossible value."""


class Unsupported(WireError):
    """Raised when a request asks for something that its protocol knows and a brain does not give."""

    code = "unsupported_value"


class TooLarge(RequestError):
    """Raised when a request is over one of the caps."""

    status = 413
    code = "request_too_large"


class Unauthorized(RequestError):
    """Raised when a request carries no key or an unknown one."""

    status = 401
    code = "invalid_api_key"


class BadSignature(Unauthorized):
    """Raised when a delivery to a webhook does not prove who sent it, or when."""

    code = "invalid_signature"


class NotFound(RequestError):
    """Raised when a request names something that does not exist."""

    status = 404
    code = "not_found"


class UnknownModel(NotFound):
    """Raised when a request asks for a model that a strict brain does not have."""

    code = "model_not_found"


class Conflict(RequestError):
    """Raised when a run id is used again with another request."""

    status = 409
    code = "run_id_conflict"


class Busy(BrainError):
    """Raised when this deployment carries as much as it can."""

    status = 429
    code = "overloaded"
    retryable = True

    @property
    def public(self) -> str:
        return str(self)


class ServerEnding(BrainError):
    """Raised when the server that relays an answer ends before it; its run goes on."""

    status = 503
    code = "server_ending"
    retryable = True
    safe = "The server is being restarted and the run goes on; send the request again, under the same run id, for its answer."


class ModelError(BrainError):
    """Raised when the model behind the brain failed."""

    status = 502
    code = "model_error"
    retryable = True
    safe = "The model behind this brain failed."


class ModelRefused(ModelError):
    """Raised when a model's server refuses our key or our request."""

    code = "model_refused"
    retryable = False
    safe = "The model behind this brain refused the request."


class ContextTooLong(ModelRefused):
    """Raised when a model's server says that the conversation does not fit its context."""

    status = 400
    code = "context_length_exceeded"
    safe = "The conversation is too long for the model behind this brain; shorten it."

    _NUMBERS = re.compile(
        r"(?P<is>\d+) tokens > (?P<may>\d+) maximum"
        r"|maximum context length is (?P<may2>\d+) tokens\D+(?P<is2>\d+) tokens"
    )

    @property
    def public(self) -> str:
        """With the numbers that the server told, if any: Claude Code reads them to know how much it has to drop."""
        found = self._NUMBERS.search(str(self))
        if found is None:
            return self.safe
        return f"prompt is too long: {found['is'] or found['is2']} tokens > {found['may'] or found['may2']} maximum"


class ModelBusy(ModelError):
    """Raised when a model's server is over its limits or overloaded."""

    status = 429
    code = "model_busy"
    safe = "The model behind this brain is over its limits; try again later."


class ModelOverloaded(ModelBusy):
    """Raised when a model's server says that it is overloaded for everybody."""

    status = 529
    code = "model_overloaded"
    safe = "The model behind this brain is overloaded; try again later."


class ModelTimeout(ModelError):
    """Raised when a model's server takes longer than the model's timeout."""

    status = 504
    code = "model_timeout"
    safe = "The model behind this brain took too long."


class ModelBroke(ModelError):
    """Raised when a model's server fails, breaks off or answers what its protocol does not allow."""

    code = "model_broke"
    safe = "The model behind this brain broke off."


class SchemaError(BrainError):
    """Raised when a model's answer does not fit the shape that was asked for."""

    status = 502
    code = "schema_mismatch"
    retryable = True
    safe = "The model's answer did not have the expected shape."


class PayloadError(SchemaError):
    """Raised when what a trigger carries does not fit the shape that was asked for."""

    status = 422
    code = "payload_mismatch"
    retryable = False
    safe = "What came with the call does not have the expected shape."


class ToolError(BrainError):
    """Raised when a tool call cannot be carried out."""

    code = "tool_error"
    safe = "A tool of this brain failed."


class StoreError(BrainError):
    """Raised when a brain's memory cannot keep or give a value."""

    code = "store_error"
    safe = "The memory of this brain failed."


class SelectError(BrainError):
    """Raised when an agent selects a flow that is not there, or two select different ones at once."""

    code = "select_error"
    safe = "This brain could not decide how to answer."


class BudgetSpent(BrainError):
    """Raised when a run has spent its budget and would ask a model once more."""

    code = "budget_spent"
    safe = "This brain has spent its budget for the request."


class RunError(BrainError):
    """Raised when a run cannot go on."""

    code = "run_failed"
    safe = "The run failed."


class HandlerFailed(RunError):
    """Raised when an author's handler raises."""

    code = "handler_failed"
    safe = "A step of this brain failed."


class Unstorable(RunError):
    """Raised when a step makes a value that a run cannot keep: what has no JSON, or could not be read again."""

    code = "unstorable"
    safe = "A step of this brain failed."


class RunInterrupted(RunError):
    """Raised when a run's worker is lost and the run has no durable flow to go on from."""

    status = 503
    code = "run_interrupted"
    retryable = True
    safe = "The run was interrupted; send the request again."


class BrainChanged(RunError):
    """Raised when a brain was changed while one of its runs was under way."""

    status = 503
    code = "brain_changed"
    retryable = True
    safe = "The brain was changed meanwhile; send the request again."


class RunCancelled(RunError):
    """Raised when somebody stops a run."""

    status = 499
    code = "run_cancelled"
    safe = "The run was cancelled."


class TriggerError(RunError):
    """Raised when a trigger that a run reaches cannot be set."""

    code = "trigger_failed"


class RunExpired(RunError):
    """Raised when a run's record is gone."""

    status = 410
    code = "run_expired"
    safe = "The run is gone; send the request again under a new id."


class TaskFailed(RunError):
    """Raised when a task of an orchestrator comes to no answer."""

    code = "task_failed"
    safe = "This brain came to no answer."


class TaskAborted(TaskFailed):
    """Raised when the model gives a task up; its message is the model's own reason, written for whoever asked."""

    status = 422
    code = "task_aborted"

    @property
    def public(self) -> str:
        return str(self)


def by_code(code: str, message: str) -> BrainError:
    """An error of the class that has this code, as a record keeps it; `BrainError` when there is none."""
    classes: list[type[BrainError]] = [BrainError]
    for known in classes:
        if known.code == code and known is not WiringError:
            return known(message)
        classes += known.__subclasses__()
    return BrainError(message)
