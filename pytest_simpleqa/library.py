"""The library entry: one dataset put to one answer model, without pytest."""

from __future__ import annotations

import contextlib
import math
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from .caller import Caller, awaited, current_caller
from .cast import Cast, Casting
from .dataset import load_dataset, select
from .engine import Engine
from .errors import OptionError, RunStopped
from .evals.completion import completion_functions
from .judges.parse import other_rule
from .judges.protocol import Judge
from .judges.sentinels import with_sentinels
from .metrics import Counts
from .models.embedded import Embedded
from .models.protocol import Answerer, Model
from .models.spec import Params, Surroundings
from .models.wrapping import Wrapper
from .prompts import ANSWER_TEMPLATE, Template, grade_template
from .records import Dataset, QuestionResult
from .report import Report
from .reportbuild import build_report
from .runevents import Event, done_event, progress_event, start_event
from .stage import Ask, Stage
from .wording import one_line, progress_line

Function = Callable[[Any], Any]
"""A callable `(prompt) -> str`, plain or async; a prompt is a text, or chat messages where it has `chat = True`."""
Hook = Callable[[Event], object]


class RunCutShort(RunStopped):
    """The run stopped itself: a key was refused, a quota used up, a service gone; `str()` is the reason."""

    def __init__(self, reason: str, report: Report) -> None:
        super().__init__(reason)
        self.report = report
        """What was finished before the stop."""


def run(
    dataset: Dataset | str | Path,
    answer: str | Model | Answerer | Function,
    judge: str | Judge | Model | Function,
    *,
    wrap: Wrapper | Sequence[Wrapper] = (),
    answer_prompt: str | Template | None = None,
    grade_prompt: str | Template | None = None,
    ask_confidence: bool = False,
    answer_params: Params | None = None,
    judge_params: Params | None = None,
    concurrency: int = 32,
    limit_questions: int = 0,
    repeats: int = 1,
    sentinels: int = 0,
    max_samples: int = 200,
    per_question_timeout: float = 90.0,
    parse: Literal["strict", "paper"] = "strict",
    hook: Hook | None = None,
    progress_pct: float = 25.0,
    include_topic_breakdown: bool = True,
) -> Report:
    """Put `dataset` to `answer`, let `judge` grade, and return the Report when all is done.

    The engine, prompts and metrics are those of a pytest run. `dataset` is one, or a source as behind
    `--simpleqa-dataset`; `answer` and `judge` are specs as behind `--answer-llm` and `--judge-llm`, objects
    of the protocols, or callables `(prompt) -> str` (for the judge: a model to put the grade prompt to).
    Keys come from the environment; relative paths count from the working directory. Plain callables run
    in threads, async ones on a loop of the run's own. Objects are closed at the end.

    `wrap` is what stands around the answer model, one async function `(question, prompt, complete, repeat)` or
    several, the outermost first, like those of the hook `pytest_simpleqa_wrap`; they run on the run's own loop.

    With `ask_confidence` the answer prompt asks for a stated percentage as well, which the Report's `calibration` is
    about. `answer_params` and `judge_params` (default `{"temperature": 0}`) are request parameters for specs and
    callables. `concurrency` counts pairs of answer and judge in flight, `per_question_timeout` seconds (0:
    none); `limit_questions=0` and `max_samples=-1` mean all. So many `sentinels`, answers whose verdict is known,
    are shown to the judge among the others. `hook` gets each Event: `start`, `qa_progress` every `progress_pct`
    percent (0: never), `done`; an exception in it is only warned of.

    A question that fails is a row of the Report. Raises SimpleQAError for a mistake, in one line and before
    anything is asked; RunCutShort, with the Report of what was finished, where the run stopped itself.
    """
    _check_numbers(concurrency, limit_questions, repeats, sentinels, max_samples, per_question_timeout, progress_pct)
    _check_parse(parse)
    prompt = _template("answer_prompt", ANSWER_TEMPLATE if answer_prompt is None else answer_prompt, "question")
    prompts = (
        prompt.asking_confidence() if ask_confidence else prompt,
        _template(
            "grade_prompt",
            grade_template() if grade_prompt is None else grade_prompt,
            "question",
            "target",
            "predicted_answer",
        ),
    )
    rows = dataset if isinstance(dataset, Dataset) else load_dataset(dataset)
    population = select(rows, limit=limit_questions)
    caller = current_caller()
    embedded = Embedded()
    casting = Casting(
        Surroundings(os.environ, Path.cwd(), rows.questions, embedded.address, functions=completion_functions()),
        threads=concurrency,
        home=caller.loop if caller else None,
    )
    cast = Cast(
        casting.answerer(answer, answer_params or {}, prompts[0], wrap if isinstance(wrap, Sequence) else (wrap,)),
        with_sentinels(
            casting.judge(judge, {"temperature": 0} if judge_params is None else judge_params, prompts[1], parse),
            sentinels,
            population.questions,
            rows.questions,
            seed=0,
        ),
    )
    embedded.paths = cast.local_paths
    names = _names(answer, judge, cast)
    asks = [Ask(question, repeat) for question in population for repeat in range(1, repeats + 1)]
    teller = _Teller(population.name, len(asks), _careful_hook(hook, caller), progress_pct)

    teller.start(*names)
    started_at, began = datetime.now(UTC), time.monotonic()
    with _engine(cast, embedded, names, concurrency, per_question_timeout) as engine:
        if caller is not None:
            caller.stops_with(engine.stop)
        results = {(result.id, result.repeat): result for result in teller.heard(_results(engine, asks))}
    report = build_report(
        dataset=population.name,
        model=names[0],
        judge=names[1],
        started_at=started_at,
        duration_s=time.monotonic() - began,
        population=population.questions,
        results=results,
        repeats=repeats,
        max_samples=max_samples,
        topic_breakdown=include_topic_breakdown,
        options={
            "concurrency": concurrency,
            "limit_questions": limit_questions,
            "max_samples": max_samples,
            "per_question_timeout": per_question_timeout,
            "repeats": repeats,
            "sentinels": sentinels,
            "parse": parse,
            "include_topic_breakdown": include_topic_breakdown,
            "ask_confidence": ask_confidence,
        },
        provenance=_provenance(population, prompts, cast),
        other_parse=other_rule(paper=parse == "paper"),
    )
    teller.done(report)
    if engine.gave_up is not None:
        raise RunCutShort(engine.gave_up, report)
    return report


# -- what was given --------------------------------------------------------------------------------


def _names(answer: object, judge: object, cast: Cast) -> tuple[str, str]:
    """Return how the Report calls both: the specs as typed, else what they say of themselves."""
    return tuple(  # type: ignore[return-value]  # two in, two out
        given if isinstance(given, str) else f"{said.get('provider')}:{said.get('model')}"
        for given, said in zip((answer, judge), cast.describe(), strict=True)
    )


def _template(option: str, given: str | Template, *needed: str) -> Template:
    template = given if isinstance(given, Template) else Template(given)
    template.require(option, *needed)
    return template


def _check_numbers(
    concurrency: int,
    limit_questions: int,
    repeats: int,
    sentinels: int,
    max_samples: int,
    timeout: float,
    progress_pct: float,
) -> None:
    for name, value, least in (
        ("concurrency", concurrency, 1),
        ("limit_questions", limit_questions, 0),
        ("repeats", repeats, 1),
        ("sentinels", sentinels, 0),
        ("max_samples", max_samples, -1),
    ):
        if value < least or int(value) != value:
            raise OptionError(f"{name}={value!r}: wanted a whole number of at least {least}")
    if not (timeout >= 0 and math.isfinite(timeout)):
        raise OptionError(f"per_question_timeout={timeout!r}: wanted seconds, at least 0 (none)")
    if not 0 <= progress_pct <= 100:
        raise OptionError(f"progress_pct={progress_pct!r}: wanted a number from 0 (never) to 100")


def _check_parse(parse: str) -> None:
    if parse not in ("strict", "paper"):
        raise OptionError(f"parse={parse!r}: wanted 'strict' or 'paper'")


# -- asking ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def _engine(
    cast: Cast, embedded: Embedded, names: tuple[str, str], concurrency: int, timeout: float
) -> Iterator[Engine]:
    """Start what the run needs and give it back, however the run ends."""
    assert cast.answerer is not None
    assert cast.judge is not None
    answer_limit, judge_limit = cast.limits
    try:
        embedded.start()
        stage = Stage(cast.answerer, cast.judge, timeout, names, answer_limit, judge_limit)
        engine = Engine({"": stage}, concurrency=concurrency)
        try:
            yield engine
        finally:
            engine.close()
    finally:
        embedded.stop()


def _results(engine: Engine, asks: list[Ask]) -> Iterator[QuestionResult]:
    """Yield the results in dataset order; after a stop those that were finished, or under way and arrived."""
    engine.offer(asks)
    for ask in asks:
        try:
            result = engine.result(ask)
        except RunStopped:
            engine.close()
            with contextlib.suppress(RunStopped):
                yield engine.result(ask)
        else:
            yield result


def _provenance(dataset: Dataset, prompts: tuple[Template, Template], cast: Cast) -> dict[str, Any]:
    answer, judge = cast.describe()
    return {
        "dataset_sha256": dataset.sha256,
        "answer_prompt_sha256": prompts[0].sha256,
        "grade_prompt_sha256": prompts[1].sha256,
        "answer": dict(answer),
        "judge": dict(judge),
        "versions": {"pytest_simpleqa": version("pytest-simpleqa"), "python": platform.python_version()},
    }


# -- telling ---------------------------------------------------------------------------------------


class _Teller:
    """Tells the hook how far the run is."""

    def __init__(self, name: str, total: int, hook: Hook | None, progress_pct: float) -> None:
        self._name = name
        self._total = total
        self._hook = hook
        self._pct = progress_pct

    def start(self, answer: str, judge: str) -> None:
        self._tell(lambda: start_event(self._name, self._total, answer, judge))

    def heard(self, results: Iterator[QuestionResult]) -> Iterator[QuestionResult]:
        """Pass results on, and tell of each step that they complete."""
        began, counts, step = time.monotonic(), Counts(), 0
        for result in results:
            counts += Counts.from_results([result])
            reached = int(100 * counts.n / self._total / self._pct) if self._pct else 0
            if reached > step:
                step = reached
                self._progress(counts, time.monotonic() - began)
            yield result

    def done(self, report: Report) -> None:
        self._tell(lambda: done_event(report, one_line(report)))

    def _progress(self, counts: Counts, elapsed_s: float) -> None:
        line = progress_line(counts.n, self._total, counts, elapsed_s=elapsed_s)
        self._tell(lambda: progress_event(self._name, counts.n, self._total, line))

    def _tell(self, event: Callable[[], Event]) -> None:
        if self._hook is not None:
            self._hook(event())


def _careful_hook(hook: Hook | None, caller: Caller | None) -> Hook | None:
    """Return `hook` so that its exceptions are warnings, called on the caller's loop where there is one."""
    if hook is None:
        return None

    def careful(event: Event) -> None:
        try:
            hook(event)
        except Exception as error:  # a chat that is down must not cost the run
            message = f"the hook failed at {event.kind}: {type(error).__name__}: {error}"
            warnings.warn(message, RuntimeWarning, stacklevel=2)

    return careful if caller is None else caller.post(careful)


arun = awaited(run)
arun.__name__ = arun.__qualname__ = "arun"
arun.__doc__ = """`run` for a running event loop, such as a notebook's, which stays free meanwhile.

    report = await arun("sample", ask, "rules")

Takes and raises what `run` does. Async callables are awaited on the caller's loop, and the hook is called on
it. Cancelling stops the run: nothing new is asked, and what is under way is given up within a second.
"""
