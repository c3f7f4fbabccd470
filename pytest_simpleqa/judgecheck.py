"""The judge on trial: it grades answers that have labels, and what comes of it is told in figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .agreement import JudgeErrors, Measured, Rated, agreement, kappa
from .errors import ModelError, RunError
from .keptrun import KeptRun
from .labelled import Labelled, LabelledAnswer
from .library import Hook, run
from .models.protocol import Model
from .models.reply import cut_thinking
from .records import GRADED, Dataset, Question, QuestionResult, Reply, Verdict
from .report import Report
from .textline import Line, fitted, spaced, wrapped
from .wording import cut, ends, left, many, rate, visible

DISAGREEMENTS_SHOWN = 20
FAILED = "failed"
"""What stands for a judge failure beside the verdicts."""

_WORDS = {**{verdict.value: verdict.value.replace("_", " ") for verdict in GRADED}, FAILED: FAILED}


class _Told:
    """Answers with what the labelled file holds."""

    model: Model | None = None
    max_in_flight: int | None = None
    is_service = False

    def __init__(self, labelled: Labelled) -> None:
        self._name = labelled.name
        self._predicted = {each.question.id: each.predicted for each in labelled.answers}

    async def answer(self, question: Question, repeat: int) -> Reply:
        text, left_open = cut_thinking(self._predicted[question.id])
        if left_open:
            raise ModelError("truncated", "the answer ends inside its <think> block", calls=0)
        return Reply(text, calls=0)

    async def close(self) -> None: ...

    def describe(self) -> Mapping[str, Any]:
        return {"provider": "labelled", "model": self._name, "base_url_host": None, "params": {}}


@dataclass(frozen=True)
class JudgeCheck:
    """A judge's verdicts beside the labels."""

    labelled: Labelled
    report: Report
    """Of the judge's verdicts; its samples keep every row."""

    @property
    def pairs(self) -> list[tuple[LabelledAnswer, QuestionResult]]:
        """The rows that have a label, with what the judge made of each."""
        known = {result.id: result for result in self.report.samples}
        return [
            (each, known[each.question.id])
            for each in self.labelled.answers
            if each.label and each.question.id in known
        ]

    @property
    def rated(self) -> list[Rated]:
        """The same for counting: where labels are Yes and No, what was not attempted was not right."""
        return [
            Rated(str(each.label), self._judged(result), each.question.question_hash) for each, result in self.pairs
        ]

    def _judged(self, result: QuestionResult) -> str:
        if result.verdict == Verdict.NOT_ATTEMPTED and self.labelled.is_yes_no:
            return Verdict.INCORRECT.value
        return _word(result)


def _word(result: QuestionResult) -> str:
    """Return what the judge made of an answer; a choice that is neither right nor wrong is no verdict on it."""
    return result.verdict.value if result.verdict in GRADED else FAILED


def check_judge(
    labelled: Labelled,
    judge: str,
    params: Mapping[str, Any] | None,
    *,
    concurrency: int = 32,
    limit: int = 0,
    hook: Hook | None = None,
) -> JudgeCheck:
    """Let the judge that the spec names grade the answers; `hook` hears how far it is.

    Raises SimpleQAError, or RunStopped where the judge gave up.
    """
    if not any(each.label for each in labelled.answers[: limit or None]):
        raise RunError(f"{labelled.name}: no answer that is to be judged has a label")
    dataset = Dataset(labelled.name, tuple(each.question for each in labelled.answers), sha256="")
    report = run(
        dataset,
        _Told(labelled),
        judge,
        judge_params=params,
        concurrency=concurrency,
        limit_questions=limit,
        max_samples=-1,
        include_topic_breakdown=False,
        hook=hook,
    )
    return JudgeCheck(labelled, report)


# -- in words -------------------------------------------------------------------------------------


def check_lines(check: JudgeCheck, width: int, others: Sequence[KeptRun] = ()) -> list[Line]:
    """Return the matrix, the figures and the first disagreements; `others` are runs to correct the accuracy of."""
    return spaced(
        [_head(check, width), _matrix(check, width), _figures(check, width, others), _disagreements(check, width)]
    )


def _head(check: JudgeCheck, width: int) -> Iterator[Line]:
    text = f"{check.labelled.name}: {many(check.report.n, 'answer')} judged by {check.report.judge}"
    if (labelled := len(check.pairs)) < check.report.n:
        text += f", {labelled:,} of them labelled"
    yield from (Line.of(cut(line, width), bold=True) for line in wrapped(visible(text), width, "  "))
    for note in check.labelled.notes:
        yield from (Line.of(cut(line, width), yellow=True) for line in wrapped(visible(note), width, "  "))


def _matrix(check: JudgeCheck, width: int) -> Iterator[Line]:
    """Yield a row for each label and a column for each verdict of the judge."""
    counts = Counter((str(each.label), _word(result)) for each, result in check.pairs)
    labels = [verdict.value for verdict in GRADED if verdict != Verdict.NOT_ATTEMPTED or not check.labelled.is_yes_no]
    judged = [*(verdict.value for verdict in GRADED), *([FAILED] if check.report.failures else [])]
    yield Line.of(cut(left("label / judge", 15) + "".join(_WORDS[word].rjust(15) for word in judged), width))
    for label in labels:
        cells = (f"{counts[label, word]:,}" for word in judged)
        yield Line.of(cut(left(_WORDS[label], 15) + "".join(cell.rjust(15) for cell in cells), width))


def _figures(check: JudgeCheck, width: int, others: Sequence[KeptRun]) -> Iterator[Line]:
    rated = check.rated
    errors = JudgeErrors.of(rated, Verdict.CORRECT.value)
    agreed = sum(row.label == row.judged for row in rated)
    yield _figure("agreement", agreement(rated), f"{agreed:,} of {len(rated):,}", width)
    yield _figure("Cohen's kappa", kappa(rated), "", width)
    yield _share("right called right", errors.right_called_right, errors.right, width)
    yield _share("wrong called right", errors.wrong - errors.wrong_called_wrong, errors.wrong, width)
    yield _share("accuracy by label", errors.right, len(rated), width)
    yield from _accuracy(errors, check.report, "accuracy by judge", width)
    for kept in others:
        yield from _accuracy(errors, kept.report, cut(visible(kept.path.name), 20), width)
    for line in wrapped(_how(check), width):
        yield Line.of(line)


def _accuracy(errors: JudgeErrors, report: Report, name: str, width: int) -> Iterator[Line]:
    correct, rows = report.fraction("accuracy")
    yield _share(name, correct, rows, width)
    yield _figure("  corrected", errors.corrected(correct, rows), "", width)


def _how(check: JudgeCheck) -> str:
    """Return what the figures count, and where their formulas are from."""
    counted = "An answer that is not attempted counts as incorrect. " if check.labelled.is_yes_no else ""
    return (
        f"{counted}95 % intervals: agreement after Wilson (1927), kappa after Fleiss, Cohen and Everitt (1969), the "
        "answers to one question taken together; corrected for this judge's errors after Rogan and Gladen (1978), "
        "the interval after Lang and Reiczigel (2014)."
    )


def _figure(name: str, found: Measured | None, words: str, width: int) -> Line:
    if found is None:
        return Line.of(cut(f"{left(name, 20)}    -  the labels and this judge do not tell", width))
    interval = f"{ends(found.interval):<11}"
    return Line.of(cut(f"{left(name, 20)}{rate(found.value):>5}  {interval}  {words}".rstrip(), width))


def _share(name: str, part: int, whole: int, width: int) -> Line:
    value = rate(part / whole) if whole else "-"
    return Line.of(cut(f"{left(name, 20)}{value:>5}  {'':<11}  {part:,} of {whole:,}", width))


def _disagreements(check: JudgeCheck, width: int) -> Iterator[Line]:
    rated = check.rated
    found = [pair for pair, row in zip(check.pairs, rated, strict=True) if row.label != row.judged]
    if not found:
        return
    first = f", the first {DISAGREEMENTS_SHOWN}" if len(found) > DISAGREEMENTS_SHOWN else ""
    yield Line.of(cut(f"{many(len(found), 'disagreement')}{first}", width), bold=True)
    for each, result in found[:DISAGREEMENTS_SHOWN]:
        judged = _WORDS[_word(result)]
        start = f"{each.question.id} {_WORDS[str(each.label)]}, judged {judged}:"
        texts = (("", each.question.problem), ("gold: ", each.question.answer), ("predicted: ", each.predicted))
        yield Line.of(fitted(start, texts, width))
