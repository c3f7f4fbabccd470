"""Which roles this process plays, decided once at configure: it answers, it reports, or it deals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from . import machines, sinks, wire
from .cast import Cast
from .errors import OptionError, SimpleQAError
from .fixtureruns import FixtureRuns
from .gates import Gates
from .ledger import Ledger
from .models.embedded import Embedded
from .options import Options
from .plan import Plan, planned
from .reporter import Reporter
from .reportfile import require_writable
from .rundir import RunDir
from .runner import Runner
from .screen import Screen
from .seat import ANY_TEST, Seat
from .surroundings import cast_of
from .usercode import user_code
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
        _refuse(config, str(error))
    except OSError as error:  # a path that the system will not even look at: too long, or not allowed
        _refuse(config, f"{error.filename}: {error.strerror}")


def _refuse(config: pytest.Config, reason: str) -> None:
    """Tell of a mistake of the user: from another machine by way of the controller."""
    if not wire.is_far(config):
        raise pytest.UsageError(visible(reason)) from None
    config.pluginmanager.register(machines.Refusal(visible(reason)), "simpleqa-refusal")


def _register_worker(config: pytest.Config, asked: Options) -> None:
    worker = wire.Worker(config)
    runs = planned(config, asked, worker.paths)
    embedded = Embedded(worker.addresses)
    cast = _once_for_each_dataset(lambda plan: cast_of(config, plan, embedded))
    if worker.is_far:  # files, keys and models are its own: nothing is asked unless they come to the same
        mine = {plan.name: RunDir(plan, cast(plan).describe, Screen(config).warn).content for plan in runs.plans}
        code = user_code(mine.values(), config.pluginmanager.get_plugins(), asked.invocation_dir)
        machines.require_same(worker.told, mine, code)
    in_tests = FixtureRuns(config.rootpath, asked, runs.own)
    runner = Runner(config, asked, runs, in_tests, worker.seat, cast, embedded, worker.upcoming)
    config.pluginmanager.register(worker, "simpleqa-worker")
    config.pluginmanager.register(runner, "simpleqa-runner")


def _register_controller(config: pytest.Config, asked: Options) -> None:
    if config.getoption("dist", "no") == "each":
        raise OptionError("--dist each would put every question once per worker; use --dist load")
    if asked.out is not None:
        require_writable(asked.out)
    gates = Gates.of(asked.gates, asked.baseline, asked.max_failures)
    runs = planned(config, asked)
    plans = runs.plans
    if len(plans) > 1 and asked.out is not None and "{name}" not in asked.out.name:
        raise OptionError(
            f"--simpleqa-out={asked.out}: the session holds {len(plans)} runs; put {{name}} into the file's name"
        )
    if plans:
        gates.require_runs({plan.name: plan.dataset.questions for plan in plans})
    for plan in plans:
        _refuse_overwriting(asked, plan)
    embedded = Embedded()
    asks = asked.answer_llm and not config.option.collectonly
    cast = _once_for_each_dataset(lambda plan: cast_of(config, plan, embedded) if asks else Cast())
    casts = {plan.name: cast(plan) for plan in plans}
    if not plans and asked.judge_llm is not None:  # only tests may ask: what they need is tried before collecting
        casts[ANY_TEST] = cast(Plan.of_nothing(asked))
    embedded.paths = tuple({path: None for each in casts.values() for path in each.local_paths})
    screen, names = Screen(config), [plan.name for plan in plans]
    session = uuid4().hex

    def open_ledger(plan: Plan) -> Ledger:
        names.append(plan.name)
        held = gates.for_run(plan.name, names)
        gates.require_runs({each.name: each.dataset.questions for each in (*(led.plan for led in ledgers), plan)})
        _refuse_overwriting(asked, plan)
        ledger = Ledger(plan, cast(plan), held, screen.warn, session, alone=False)
        ledgers.append(ledger)
        return ledger

    ledgers = [
        Ledger(plan, cast(plan), gates.for_run(plan.name, names), screen.warn, session, alone=len(plans) == 1)
        for plan in plans
    ]
    in_tests = FixtureRuns(config.rootpath, asked, runs.own)
    reporter = Reporter(config, asked, ledgers, gates, screen, runs.notices, in_tests=in_tests, open_ledger=open_ledger)
    config.pluginmanager.register(reporter, "simpleqa-reporter")
    sinks.register(config, asked, ledgers, screen.warn)
    limits = {name: each.limits for name, each in casts.items()}
    limits.setdefault(ANY_TEST, next(iter(limits.values()), (None, None)))

    def run_dirs() -> dict[str, Path]:
        return {name: ledger.run_dir.path for name, ledger in reporter.ledgers.items()}

    if wire.distributes(config):
        controller = wire.Controller(
            config,
            asked,
            plans,
            run_dirs=run_dirs,
            limits=limits,
            embedded=embedded,
            on_selected=reporter.selected,
            read_run=in_tests.read,
            contents=lambda: {ledger.plan.name: ledger.run_dir.content for ledger in ledgers},
        )
        config.pluginmanager.register(controller, "simpleqa-controller")
        return

    def seat() -> Seat:
        return Seat(asked.concurrency, limits, run_dirs())

    runner = Runner(config, asked, runs, in_tests, seat, cast, embedded)
    config.pluginmanager.register(runner, "simpleqa-runner")


def _once_for_each_dataset(make: Callable[[Plan], Cast]) -> Callable[[Plan], Cast]:
    """Return `make` so that runs of the same questions share who answers and who judges."""
    made: dict[int, tuple[Plan, Cast]] = {}

    def cast(plan: Plan) -> Cast:
        if id(plan.dataset) not in made:
            made[id(plan.dataset)] = plan, make(plan)
        return made[id(plan.dataset)][1]

    return cast


def _refuse_overwriting(asked: Options, plan: Plan) -> None:
    """Raise OptionError where the Report of a run would take the place of its dataset."""
    out = asked.out_of(plan.name)
    if out is not None and plan.path is not None and out.exists() and out.samefile(plan.path):
        raise OptionError(f"--simpleqa-out={out}: that is the dataset, which the Report would overwrite")
