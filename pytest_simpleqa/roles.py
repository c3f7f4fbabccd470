"""Which roles this process plays, decided once at configure: it answers, it reports, or it deals."""

from __future__ import annotations

import pytest

from . import wire
from .cast import Cast
from .errors import OptionError, SimpleQAError
from .judges.spec import resolve_judge
from .models.embedded import Embedded
from .models.spec import resolve_answerer
from .options import Options
from .plan import Plan
from .report import require_writable
from .reporter import Reporter
from .runner import Runner, Seat
from .surroundings import surroundings_of
from .wording import visible


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
        raise pytest.UsageError(visible(str(error))) from None
    except OSError as error:  # a path that the system will not even look at: too long, or not allowed
        raise pytest.UsageError(visible(f"{error.filename}: {error.strerror}")) from None


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
    reporter = Reporter(
        config,
        plan,
        describe=cast.describe,
        calls_per_question=cast.calls_per_question,
        notices=cast.notices,
    )
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


def _cast(config: pytest.Config, plan: Plan, embedded: Embedded) -> Cast:
    options = plan.options
    around = surroundings_of(config, plan, embedded)
    assert options.answer_llm is not None
    assert options.judge_llm is not None
    return Cast(
        resolve_answerer(options.answer_llm, options.answer_params, options.answer_prompt, around),
        resolve_judge(options.judge_llm, options.judge_params, options.grade_prompt, around, paper=options.paper),
    )
