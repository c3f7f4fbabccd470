"""Which roles this process plays, decided once at configure: it answers, it reports, or it deals."""

from __future__ import annotations

import pytest

from . import wire
from .cast import Cast
from .errors import OptionError, SimpleQAError
from .gates import Gates
from .models.embedded import Embedded
from .options import Options
from .plan import Plan
from .reporter import Reporter
from .reportfile import require_writable
from .runner import Runner, Seat
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
        raise pytest.UsageError(visible(str(error))) from None
    except OSError as error:  # a path that the system will not even look at: too long, or not allowed
        raise pytest.UsageError(visible(f"{error.filename}: {error.strerror}")) from None


def _register_worker(config: pytest.Config, asked: Options) -> None:
    worker = wire.Worker(config)
    plan = Plan.make(config, asked, worker.dataset_path)
    embedded = Embedded(worker.addresses)
    runner = Runner(config, plan, worker.seat, lambda: cast_of(config, plan, embedded), embedded, worker.upcoming)
    config.pluginmanager.register(worker, "simpleqa-worker")
    config.pluginmanager.register(runner, "simpleqa-runner")


def _register_controller(config: pytest.Config, asked: Options) -> None:
    if config.getoption("dist", "no") == "each":
        raise OptionError("--dist each would put every question once per worker; use --dist load")
    if asked.out is not None:
        require_writable(asked.out)
    gates = Gates.of(asked.gates, asked.baseline, asked.max_failures)
    plan = Plan.make(config, asked)
    gates.require_slices(plan.dataset)
    if asked.out is not None and asked.out.exists() and asked.out.samefile(plan.path):
        raise OptionError(f"--simpleqa-out={asked.out}: that is the dataset, which the Report would overwrite")
    embedded = Embedded()
    cast = cast_of(config, plan, embedded) if asked.answer_llm and not config.option.collectonly else Cast()
    embedded.paths = cast.local_paths
    reporter = Reporter(config, plan, cast, gates)
    config.pluginmanager.register(reporter, "simpleqa-reporter")
    if wire.distributes(config):
        controller = wire.Controller(
            config,
            plan,
            run_dir=lambda: reporter.run_dir.path,
            limits=cast.limits,
            embedded=embedded,
            on_selected=reporter.selected,
            resuming=lambda: reporter.run_dir.resumed > 0,
        )
        config.pluginmanager.register(controller, "simpleqa-controller")
        return

    def seat() -> Seat:
        home = reporter.run_dir
        return Seat(asked.concurrency, *cast.limits, run_dir=home.path, resuming=home.resumed > 0)

    config.pluginmanager.register(Runner(config, plan, seat, lambda: cast, embedded), "simpleqa-runner")
