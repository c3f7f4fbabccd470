"""What specs need from this process: the environment, the conftest's hooks, the embedded server."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pluggy
import pytest

from .errors import SpecError
from .models.embedded import Embedded
from .models.importing import error_line
from .models.protocol import Model
from .models.spec import Surroundings
from .models.threads import DaemonThreads
from .plan import Plan


def start_servers(embedded: Embedded) -> None:
    """Start the embedded servers of this run. Raises pytest.UsageError where one will not start."""
    try:
        embedded.start()
    except SpecError as error:
        raise pytest.UsageError(str(error)) from None


def surroundings_of(config: pytest.Config, plan: Plan, embedded: Embedded) -> Surroundings:
    """Return what the specs of `plan` may need from this process."""
    hook = config.hook
    return Surroundings(
        environment=plan.options.environment,
        base=plan.options.invocation_dir,
        questions=plan.rows.questions,
        local_address=embedded.address,
        model_hook=_model_hook(config),
        threads=(threads := plan.options.concurrency),
        answer_hook=_caller(hook.pytest_simpleqa_answer, config, ("question",), threads),
        judge_hook=_caller(hook.pytest_simpleqa_judge, config, ("question", "predicted"), threads),
    )


def _model_hook(config: pytest.Config) -> Callable[[str], Model | None]:
    def ask(spec: str) -> Model | None:
        try:
            model: Model | None = config.hook.pytest_simpleqa_model(spec=spec, config=config)
        except SpecError:
            raise
        except Exception as error:  # the user's code: told in one line, as any bad spec
            raise SpecError(f"{spec}: the hook pytest_simpleqa_model failed: {error_line(error)}") from error
        return model

    return ask


def _caller(
    hook: pluggy.HookCaller, config: pytest.Config, names: tuple[str, ...], most: int
) -> Callable[..., Awaitable[Any]] | None:
    """Return `hook` as one awaitable call: async functions on the loop, plain ones in threads of their own."""
    implementations = hook.get_hookimpls()
    if not implementations:
        return None
    on_loop = all(inspect.iscoroutinefunction(each.function) for each in implementations)
    threads = DaemonThreads(most)

    async def call(*values: Any) -> Any:
        arguments = dict(zip(names, values, strict=True))
        if on_loop:
            said = hook(**arguments, config=config)
        else:
            said = await threads.run(lambda: hook(**arguments, config=config))
        return await said if inspect.isawaitable(said) else said

    return call
