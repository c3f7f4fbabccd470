"""Which roles this process plays, decided once at configure: it answers, it reports, or it deals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from . import wire
from .errors import OptionError, SimpleQAError
from .judges.protocol import Judge
from .judges.spec import resolve_judge
from .models.embedded import Embedded
from .models.protocol import Answerer
from .models.spec import LocalModel, PromptAnswerer, resolve_answerer
from .options import Options
from .plan import Plan
from .report import require_writable
from .reporter import Reporter
from .runner import Runner, Seat
from .surroundings import surroundings_of


def register(config: pytest.Config) -> None:
    """Register what this process needs; a mistake of the user is a pytest.UsageError (exit 4)."""
    try:
        asked = Options.from_config(config)
        if asked is None:
            return
        if wire.is_worker(config):
            _register_worker(config, asked)
        else:
            _register_controller(config, asked)
    except SimpleQAError as error:
        raise pytest.UsageError(str(error)) from None


def _register_worker(config: pytest.Config, asked: Options) -> None:
    worker = wire.Worker(config)
    plan = Plan.make(config, asked, worker.dataset_path)
    runner = Runner(config, plan, worker.seat, Embedded(worker.addresses), worker.upcoming)
    config.pluginmanager.register(worker, "simpleqa-worker")
    config.pluginmanager.register(runner, "simpleqa-runner")


def _register_controller(config: pytest.Config, asked: Options) -> None:
    if config.getoption("dist", "no") == "each":
        raise OptionError("--dist each would put every question once per worker; use --dist load")
    if asked.out is not None:
        require_writable(asked.out)
    plan = Plan.make(config, asked)
    embedded = Embedded()
    cast = _cast(config, plan, embedded) if asked.answer_llm else Cast()
    embedded.paths = cast.local_paths
    reporter = Reporter(config, plan, describe=cast.describe, calls_per_question=cast.calls_per_question)
    config.pluginmanager.register(reporter, "simpleqa-reporter")
    if wire.distributes(config):
        controller = wire.Controller(
            config,
            plan,
            run_dir=lambda: reporter.run_dir,
            limits=cast.limits,
            embedded=embedded,
            on_selected=reporter.selected,
            resuming=lambda: reporter.resumed > 0,
        )
        config.pluginmanager.register(controller, "simpleqa-controller")
        return

    def seat() -> Seat:
        return Seat(asked.concurrency, *cast.limits, run_dir=reporter.run_dir, resuming=reporter.resumed > 0)

    config.pluginmanager.register(Runner(config, plan, seat, embedded), "simpleqa-runner")


@dataclass(frozen=True)
class Cast:
    """Who answers and who judges; resolved before anything is asked, to see that they can be."""

    answerer: Answerer | None = None
    judge: Judge | None = None
    """Both None under --collect-only."""

    @property
    def limits(self) -> tuple[int | None, int | None]:
        """The most requests at once to the answer model and to the judge model, in the whole run."""
        judge_model = self.judge.model if self.judge else None
        return (
            self.answerer.max_in_flight if self.answerer else None,
            judge_model.max_in_flight if judge_model else None,
        )

    @property
    def calls_per_question(self) -> int:
        """The least number of calls that a question takes."""
        judge_model = self.judge.model if self.judge else None
        return int(bool(self.answerer and self.answerer.is_service)) + int(bool(judge_model and judge_model.is_service))

    @property
    def local_paths(self) -> tuple[Path, ...]:
        """The model files that the embedded server is to serve."""
        answering = self.answerer.model if isinstance(self.answerer, PromptAnswerer) else None
        models = (answering, self.judge.model if self.judge else None)
        return tuple({model.path: None for model in models if isinstance(model, LocalModel)})

    def describe(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return what run.json and the Report say of both; no secrets."""
        return (
            self.answerer.describe() if self.answerer else {},
            self.judge.describe() if self.judge else {},
        )


def _cast(config: pytest.Config, plan: Plan, embedded: Embedded) -> Cast:
    options = plan.options
    around = surroundings_of(config, plan, embedded)
    assert options.answer_llm is not None
    assert options.judge_llm is not None
    return Cast(
        resolve_answerer(options.answer_llm, options.answer_params, options.answer_prompt, around),
        resolve_judge(options.judge_llm, options.judge_params, options.grade_prompt, around, paper=options.paper),
    )
