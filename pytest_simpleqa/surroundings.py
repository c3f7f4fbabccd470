"""What specs need from this process: the environment, the conftest's hooks, the embedded server."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pluggy
import pytest

from .cast import Cast
from .errors import OptionError, SpecError
from .judges.sentinels import with_sentinels
from .judges.spec import resolve_judge
from .models.embedded import Embedded
from .models.importing import error_line, where
from .models.protocol import Answerer, Model
from .models.spec import JUDGES_ONLY, Params, Surroundings, resolve_answerer, resolve_model, split_spec, split_specs
from .models.stated import stating
from .models.threads import DaemonThreads
from .models.wrapping import wrapped
from .plan import EvalSource, Plan


def start_servers(embedded: Embedded) -> None:
    """Start the embedded servers of this run. Raises pytest.UsageError where one will not start."""
    try:
        embedded.start()
    except SpecError as error:
        raise pytest.UsageError(str(error)) from None


def cast_of(config: pytest.Config, plan: Plan, embedded: Embedded) -> Cast:
    """Return who answers and who judges under the options of `plan`. Raises SpecError or OptionError."""
    if plan.source is not None:
        return _eval_cast(config, plan, plan.source, _surroundings_of(config, plan, embedded))
    options = plan.options
    around = _surroundings_of(config, plan, embedded)
    assert options.answer_llm is not None
    assert options.judge_llm is not None
    is_python = split_spec(options.judge_llm)[0] == "python"  # importable is what the invocation directory holds
    judging = around if is_python else replace(around, base=options.judge_base)
    answerer = resolve_answerer(options.answer_llm, options.answer_params, options.answer_prompt, around)
    judge = resolve_judge(options.judge_llm, options.judge_params, options.grade_prompt, judging, paper=options.paper)
    return Cast(
        stating(wrapped(answerer, _wrappers(config, answerer), options.answer_prompt), options.answer_prompt),
        with_sentinels(judge, options.sentinels, plan.dataset.questions, plan.rows.questions, options.seed),
    )


def _eval_cast(config: pytest.Config, plan: Plan, source: EvalSource, around: Surroundings) -> Cast:
    """Return who answers and who judges the samples of an eval: its own template, over the models that are named.

    A recording or a hook takes the place of the template's answerer or judge; judges that ask no model are not
    needed, since a template without a judge model grades by itself.
    """
    from .evals.protocol import Nobody

    options = plan.options
    assert options.answer_llm is not None
    replaced = ("replay", "hook")
    by_others = split_spec(options.answer_llm)[0] in replaced
    specs = () if by_others else split_specs(options.answer_llm)
    models = [resolve_model(spec, options.answer_params, around) for spec in specs]
    judging, judge_alias = options.judge_llm, split_spec(options.judge_llm or "")[0]
    judge_model: Model | None = None
    if judge_alias in replaced:
        judge_model = Nobody()
    elif judging is not None and judge_alias not in JUDGES_ONLY:
        judge_model = resolve_model(judging, options.judge_params, around, judges=True)
    made = source.build(models, judge_model)
    answerer, judge = made.answerer, made.judge
    if by_others:
        if judge_alias not in replaced and not made.grades_any_answer:
            raise OptionError(
                f"--answer-llm {options.answer_llm}: the code of {plan.name} asks and grades at once, so it cannot "
                f"grade what others answer; name their verdicts as well: --judge-llm {options.answer_llm}"
            )
        answerer = resolve_answerer(options.answer_llm, options.answer_params, options.answer_prompt, around)
    if judging is not None and judge_alias in replaced:
        judge = resolve_judge(judging, options.judge_params, options.grade_prompt, around)
    return Cast(wrapped(answerer, _wrappers(config, answerer), options.answer_prompt), judge, made.metrics)


def _surroundings_of(config: pytest.Config, plan: Plan, embedded: Embedded) -> Surroundings:
    """Return what the specs of `plan` may need from this process."""
    hook = config.hook
    return Surroundings(
        environment=plan.options.environment,
        base=plan.options.invocation_dir,
        questions=plan.rows.questions,
        local_address=embedded.address,
        model_hook=_model_hook(config),
        functions=_functions(plan.options.registry_paths),
        threads=(threads := plan.options.concurrency),
        answer_hook=_caller(hook.pytest_simpleqa_answer, config, ("question",), threads),
        judge_hook=_caller(hook.pytest_simpleqa_judge, config, ("question", "predicted"), threads),
    )


def _wrappers(config: pytest.Config, answerer: Answerer) -> list[Any]:
    """Return what the conftests put around `answerer`, the outermost first. Raises SpecError."""
    try:
        wrappers: list[Any] = config.hook.pytest_simpleqa_wrap(answerer=answerer, config=config)
    except SpecError:
        raise
    except Exception as error:  # the user's code: told in one line, as any bad spec
        raise SpecError(f"the hook pytest_simpleqa_wrap failed: {error_line(error)}{where(error)}") from error
    return wrappers


def _functions(registries: Sequence[Path]) -> Callable[[str, Params, Surroundings], Model]:
    def make(name: str, params: Params, around: Surroundings) -> Model:
        from .evals.completion import completion_functions  # most runs have none

        return completion_functions(registries)(name, params, around)

    return make


def _model_hook(config: pytest.Config) -> Callable[[str], Model | None]:
    def ask(spec: str) -> Model | None:
        try:
            model: Model | None = config.hook.pytest_simpleqa_model(spec=spec, config=config)
        except SpecError:
            raise
        except Exception as error:  # the user's code: told in one line, as any bad spec
            raise SpecError(
                f"{spec}: the hook pytest_simpleqa_model failed: {error_line(error)}{where(error)}"
            ) from error
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
