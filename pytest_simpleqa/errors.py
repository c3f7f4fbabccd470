"""The exception tree.

SimpleQAError            a mistake of the user: one line, no traceback (exit 4 under pytest)
├── OptionError          an option or ini value
├── DatasetError         a dataset that cannot be read: file, row and what is wrong
├── SpecError            a model spec: alias, key, package or file that is missing
└── RunError             a run directory or Report that cannot be read, written or resumed
ModelError               a model gave no usable reply: a typed value that the engine acts on
RunStopped               the run stopped itself (401, quota) or was told to stop
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .records import Reply


class SimpleQAError(Exception):
    """A mistake of the user, told in one line: place, value found, what was wanted, what to type."""


class OptionError(SimpleQAError):
    """An option or ini value is wrong."""


class DatasetError(SimpleQAError):
    """A dataset cannot be read."""


class SpecError(SimpleQAError):
    """A model spec names something that is not there."""


class RunError(SimpleQAError):
    """A run directory or Report cannot be read, written or resumed."""


class ModelError(Exception):
    """A model gave no usable reply.

    `kind` is one of the words below and ends up in `error.kind` of the Report; the engine decides
    by it whether to try again, to give up on the row, or to stop the run (see `retry.py`).

        timeout connection rate_limited server_error unreadable empty    may pass: tried again
        truncated filtered refused_request declined exception missing    this row's own
        not_found forbidden bad_request                                  stop the run if nothing has worked yet
        unauthorized quota                                               stop the run at once
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        param: str | None = None,
        calls: int = 1,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.status = status
        """HTTP status, where there was one."""
        self.retry_after = retry_after
        """Seconds the service asked us to wait."""
        self.param = param
        """The request parameter that the service refused, where it named one."""
        self.calls = calls
        """Requests that were spent on it."""
        self.partial: Reply | None = None
        """What came up to the token limit, where the reply was cut off there."""


class RunStopped(Exception):
    """No further question is asked; `str()` is the reason in one line."""
