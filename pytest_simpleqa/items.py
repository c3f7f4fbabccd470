"""The test items: one collector for the dataset, one item for each question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import pytest

from .dataset import slug
from .plan import Plan
from .records import QuestionResult, Verdict
from .stage import Ask


class QuestionFailed(AssertionError):
    """A question's item fails; `str()` is the reason in one line."""


class QuestionCollector(pytest.Collector):
    """The dataset in the collection tree, under its name: a name is no path, so it is no pytest.File."""

    def __init__(self, *, plan: Plan, answer: Callable[[QuestionItem], QuestionResult], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.plan = plan
        self.answer = answer

    @classmethod
    def make(
        cls, session: pytest.Session, plan: Plan, answer: Callable[[QuestionItem], QuestionResult]
    ) -> QuestionCollector:
        """Return the collector of `plan`; its items get their results from `answer`."""
        collector: QuestionCollector = cls.from_parent(
            session, name=plan.name, nodeid=plan.name, plan=plan, answer=answer
        )
        return collector

    def collect(self) -> Iterator[QuestionItem]:
        picked = self.plan.picked
        for name, ask in self.plan.asks():
            if picked is None or name in picked:
                yield QuestionItem.from_parent(self, name=name, ask=ask)


class QuestionItem(pytest.Item):
    """One question; passes, fails or skips by its verdict."""

    result: QuestionResult | None = None

    def __init__(self, *, ask: Ask, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ask = ask
        question = ask.question
        self.extra_keyword_matches.update(keywords_of(question.topic, question.answer_type))
        label = label_of(question.topic, question.answer_type)
        self.own_markers.append(label)
        # pytest copies the keywords into each report: a plain dict, not a walk up the tree.
        self.keywords = {self.name: True, label.name: label}

    @property
    def location(self) -> tuple[str, int | None, str]:
        """Where the item stands: the dataset's name, so that no path is made relative for each row."""
        assert self.parent is not None
        return self.parent.name, None, self.name

    def reportinfo(self) -> tuple[str, int | None, str]:
        """Where a skip by mark is said to stand: pytest insists on a line."""
        assert self.parent is not None
        return self.parent.name, 0, self.name

    def runtest(self) -> None:
        assert isinstance(self.parent, QuestionCollector)
        self.result = self.parent.answer(self)
        fails = self.parent.plan.options.fail_on
        if self.result.verdict is None or self.result.verdict in fails:
            raise QuestionFailed(told(self.result))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, QuestionFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def mark_report(self, report: pytest.TestReport) -> None:
        """Make a question that was not attempted a skip; done here, since raising one costs a traceback."""
        assert isinstance(self.parent, QuestionCollector)
        if self.result is None or report.outcome != "passed":
            return
        if self.result.verdict is Verdict.NOT_ATTEMPTED:
            report.outcome = "skipped"
            report.longrepr = (self.parent.name, 0, _reason(self.result))


class RefusedEval(pytest.Item):
    """A member of an eval set that cannot be run: it fails with the reason, and the others go on."""

    def __init__(self, *, reason: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.reason = reason

    def runtest(self) -> None:
        raise QuestionFailed(self.reason)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        return str(excinfo.value)

    def reportinfo(self) -> tuple[str, int | None, str]:
        return self.name, None, self.name


class RefusedCollector(pytest.Collector):
    """The members of an eval set that cannot be run."""

    def __init__(self, *, refused: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._refused = refused

    def collect(self) -> Iterator[RefusedEval]:
        for name, reason in self._refused.items():
            yield RefusedEval.from_parent(self, name=name, nodeid=f"{name}::cannot-run", reason=reason)


def wants_failed_of_none(config: pytest.Config, node_ids: Iterable[str]) -> bool:
    """Tell whether --lf or --ff asks for last time's failures and none of these questions is one."""
    if not (config.getoption("lf", False) or config.getoption("failedfirst", False)):
        return False
    cache = getattr(config, "cache", None)
    failed = cache.get("cache/lastfailed", {}) if cache else {}
    return not any(node_id in failed for node_id in node_ids)


def told(result: QuestionResult) -> str:
    """Return what happened to a question in one line, for failure texts."""
    if result.error is not None:
        what = "judge failure" if result.is_judge_failure else "answer error"
        return f"{what} ({result.error.kind}): {result.error.message}"
    assert result.verdict is not None
    word = result.verdict.value.replace("_", " ")
    return f"{word}: {_short(result.question)} gold: {_short(result.gold)} predicted: {_short(result.predicted or '')}"


def _reason(result: QuestionResult) -> str:
    """Return what stands behind `not attempted` in verbose output."""
    return told(result).partition(": ")[2]


def _short(text: str) -> str:
    return repr(text if len(text) <= 300 else text[:299] + "…")


@lru_cache(maxsize=1024)
def keywords_of(topic: str | None, answer_type: str | None) -> frozenset[str]:
    """Return the slugs that `-k` finds: bare, and exact ones with their kind before them."""
    words: set[str] = set()
    for kind, value in (("topic", topic), ("type", answer_type)):
        if value and (word := slug(value)):
            words |= {word, f"{kind}_{word}"}
    return frozenset(words)


@lru_cache(maxsize=1024)
def label_of(topic: str | None, answer_type: str | None) -> pytest.Mark:
    """Return the marker that `-m` finds an item by."""
    return pytest.mark.simpleqa(topic=topic, answer_type=answer_type).mark
