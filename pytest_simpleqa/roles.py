"""Which roles this process plays, decided once at configure: it answers, it reports, or it deals."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from . import machines, sinks, wire
from .cast import Cast
from .errors import OptionError, SimpleQAError
from .gates import Gates
from .ledger import Ledger
from .models.embedded import Embedded
from .options import Options
from .plan import Plan, planned
from .reporter import Reporter
from .reportfile import require_writable
from .rundir import RunDir
from .runner import Runner, Seat
from .screen import Screen
from .surroundings import cast_of
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
    casts: dict[str, Cast] = {}
    if worker.is_far:  # files, keys and models are its own: nothing is asked unless they come to the same
        casts |= {plan.name: cast_of(config, plan, embedded) for plan in runs.plans}
        mine = {plan.name: RunDir(plan, casts[plan.name].describe, Screen(config).warn).content for plan in runs.plans}
        machines.require_same(worker.told, mine)

    def cast(plan: Plan) -> Cast:
        return casts.get(plan.name) or cast_of(config, plan, embedded)

    runner = Runner(config, asked, runs, worker.seat, cast, embedded, worker.upcoming)
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
    for plan in plans:
        gates.for_run(plan.name, [each.name for each in plans]).require_slices(plan.dataset)
        _refuse_overwriting(asked, plan)
    embedded = Embedded()
    asks = asked.answer_llm and not config.option.collectonly
    casts = {plan.name: cast_of(config, plan, embedded) if asks else Cast() for plan in plans}
    embedded.paths = tuple({path: None for cast in casts.values() for path in cast.local_paths})
    screen, names = Screen(config), [plan.name for plan in plans]
    session = uuid4().hex if len(plans) > 1 else None
    ledgers = [Ledger(plan, casts[plan.name], gates.for_run(plan.name, names), screen.warn, session) for plan in plans]
    reporter = Reporter(config, asked, ledgers, gates, screen, runs.notices)
    config.pluginmanager.register(reporter, "simpleqa-reporter")
    sinks.register(config, asked, ledgers, screen.warn)
    limits = {name: cast.limits for name, cast in casts.items()}

    def run_dirs() -> dict[str, Path]:
        return {ledger.plan.name: ledger.run_dir.path for ledger in ledgers}

    if wire.distributes(config):
        controller = wire.Controller(
            config,
            asked,
            plans,
            run_dirs=run_dirs,
            limits=limits,
            embedded=embedded,
            on_selected=reporter.selected,
            contents=lambda: {ledger.plan.name: ledger.run_dir.content for ledger in ledgers},
        )
        config.pluginmanager.register(controller, "simpleqa-controller")
        return

    def seat() -> Seat:
        return Seat(asked.concurrency, limits, run_dirs())

    runner = Runner(config, asked, runs, seat, lambda plan: casts[plan.name], embedded)
    config.pluginmanager.register(runner, "simpleqa-runner")


def _refuse_overwriting(asked: Options, plan: Plan) -> None:
    """Raise OptionError where the Report of a run would take the place of its dataset."""
    out = asked.out_of(plan.name)
    if out is not None and plan.path is not None and out.exists() and out.samefile(plan.path):
        raise OptionError(f"--simpleqa-out={out}: that is the dataset, which the Report would overwrite")
