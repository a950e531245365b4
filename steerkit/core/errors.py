"""Every error of steerkit, as a tree.

SteerkitError              `.result` is what the run had done, on the error that ended a run
├── SpecError              what was asked for cannot be run (a ValueError; raised before a thread starts)
├── SteerRefused           this steer was not accepted; `.content` and `.text` give it back
│   ├── RunFinished        the run takes no more steers
│   └── SteerQueueFull     too many are waiting
├── ModelError             the model could not be asked, or did not answer; see `.kind`
│   └── AnswerCutOff       the answer reached the token limit; `.partial` is its text
├── StepLimitReached       max_steps requests were made and the pattern wanted another
├── PatternError           the model did not do what the pattern needs
│   ├── PlanError          no plan, an empty one, one too long, or a tool call in its place
│   └── CritiqueError      no critique
├── RunCancelled           somebody called cancel(), or pressed Ctrl-C in wait()
└── RunFailed              the pattern raised something else: `__cause__`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from steerkit.core.cancel import Cancelled
from steerkit.core.message import Part, Text

if TYPE_CHECKING:
    from steerkit.core.spec import Result

ModelErrorKind = Literal[
    "auth",
    "rate_limit",
    "overloaded",
    "context_length",
    "placement",
    "bad_request",
    "timeout",
    "connection",
    "truncated",
    "filtered",
    "server",
    "quota",
]


class SteerkitError(Exception):
    """The base of them all. It can be copied, and pickled for another process; its cause stays behind."""

    result: Result | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the worker that owns it: a thread belongs to its process.
        state = {name: value for name, value in vars(self).items() if name != "_worker"}
        return _restored, (type(self), self.args, state)


class SpecError(SteerkitError, ValueError):
    """What was asked for cannot be run; nothing was started and nothing was sent."""


class SteerRefused(SteerkitError):
    """This steer was not accepted: it will reach no request and stands in no list.

    Attributes:
        content: the parts that were refused, so that the caller can send them another way.
    """

    def __init__(self, message: str, content: tuple[Part, ...]) -> None:
        super().__init__(message)
        self.content = content

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.content if isinstance(part, Text))


class RunFinished(SteerRefused):
    """The run takes no more steers: it has ended, or was cancelled."""


class SteerQueueFull(SteerRefused):
    """As many steers wait as the queue holds; none was dropped for this one."""


class ModelError(SteerkitError):
    """The model could not be asked, or its answer did not arrive whole.

    Attributes:
        kind: what went wrong, one of `ModelErrorKind`.
        status: the HTTP status, or None when there was none.
        retryable: whether the same request may well succeed later.
        retry_after: seconds that the server asked to wait, or None.
        param: the request field that the provider objected to, or None.
        partial: the text that had arrived.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ModelErrorKind,
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        param: str | None = None,
        partial: str = "",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after
        self.param = param
        self.partial = partial


class AnswerCutOff(ModelError):
    """The model reached its token limit before it had finished; its tool calls were not run."""

    def __init__(self, partial: str) -> None:
        super().__init__(
            "The model's answer was cut off at its token limit, so nothing in it was carried out: "
            "raise ModelRef.max_tokens, or ask for less.",
            kind="truncated",
            partial=partial,
        )


class StepLimitReached(SteerkitError):
    """The pattern wanted one model request more than `Spec.max_steps`."""


class PatternError(SteerkitError):
    """The model answered, but not with what the pattern needs to go on."""


class PlanError(PatternError):
    """No plan, an empty plan, a plan that is too long, or a tool call where the plan should be."""


class CritiqueError(PatternError):
    """No critique, or one that does not say whether the answer is good."""


class RunCancelled(SteerkitError):
    """The run was cancelled; `.result` holds messages that can be handed to another run."""


class RunFailed(SteerkitError):
    """The pattern raised something that is no error of steerkit: see `__cause__`."""


def described(error: BaseException) -> str:
    """The type of `error` and its text, for a sentence; also when its `__str__` fails."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return f"{type(error).__name__} (its text cannot be shown)"


def ending(error: BaseException, worker: object, pattern: str) -> SteerkitError:
    """What `wait()` raises for what ended the pattern; it belongs to the run of this worker alone."""
    if isinstance(error, Cancelled):
        ended: SteerkitError = RunCancelled("The run was cancelled.")
    elif isinstance(error, SteerkitError):
        ended = error
    else:
        ended = RunFailed(
            f"The pattern {pattern!r} raised {described(error).rstrip('.')}. "
            "What it had done is on this error's .result."
        )
        ended.__cause__ = error
    # One error object may end two runs at once (a sub-run and its parent; a scripted error): the first that puts its
    # worker here, which is one step, keeps it, and the other takes a copy.
    owner = vars(ended).setdefault("_worker", worker)
    return ended if owner is worker else _copy_for(worker, ended)


def _copy_for(worker: object, error: SteerkitError) -> SteerkitError:
    """A copy of `error`, which ended another run."""
    own = _restored(type(error), error.args, {**vars(error), "_worker": worker, "result": None})
    own.__cause__ = error
    return own


def _restored(kind: type[SteerkitError], args: tuple[object, ...], state: dict[str, object]) -> SteerkitError:
    """An error as it was. Its `__init__` takes more than `args`, and has done its work already."""
    error = kind.__new__(kind, *args)
    vars(error).update(state)
    return error
