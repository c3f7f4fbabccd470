"""Text on the screen: measuring, the lines before and while, the summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from pytest_simpleqa.metrics import Counts
from pytest_simpleqa.records import Failure, Question, QuestionResult, Usage, Verdict
from pytest_simpleqa.report import Report, TopicReport
from pytest_simpleqa.reportbuild import build_report, measured
from pytest_simpleqa.terminal import Line, summary_lines
from pytest_simpleqa.wording import announcement, columns, cut, one_line, progress_line, visible

TOPICS = {
    "Art": (550, 165, 374, 11),
    "Geography": (424, 136, 275, 13),
    "History": (173, 61, 110, 2),
    "Music": (341, 104, 228, 9),
    "Other": (475, 155, 314, 6),
    "Politics": (709, 207, 494, 8),
    "Science and technology": (858, 257, 585, 16),
    "Sports": (368, 117, 243, 8),
    "TV shows": (293, 91, 198, 4),
    "Video games": (135, 52, 83, 0),
}
STARTED = datetime(2026, 11, 30, 12, tzinfo=UTC)


def row(
    number: int, verdict: Verdict | None = Verdict.INCORRECT, predicted: str | None = "Sydney", **values: Any
) -> QuestionResult:
    given: dict[str, Any] = {"problem": "What is the capital of Australia?", "answer": "Canberra"}
    given.update({key: values.pop(key) for key in given if key in values})
    return QuestionResult.for_question(
        Question(f"q{number:04}", **given), verdict=verdict, predicted=predicted, **values
    )


def failed(number: int, kind: str, message: str, predicted: str | None = None) -> QuestionResult:
    return row(number, None, predicted, error=Failure(kind, message))


def report_of(rows: Sequence[QuestionResult], **values: Any) -> Report:
    population = [Question(r.id, r.question, r.gold, r.topic) for r in rows]
    given: dict[str, Any] = {"dataset": "sample", "model": "qwen:qwen-max", "judge": "azure"}
    return build_report(
        **{**given, **values},
        started_at=STARTED,
        duration_s=41.2,
        population=population,
        results={(r.id, r.repeat): r for r in rows},
    )


@pytest.fixture(scope="module")
def whole() -> Report:
    """A full-size run over ten topics, with its real totals."""
    report = report_of([row(n) for n in range(1, 31)], dataset="simple_qa_test_set.csv")
    return measured(
        replace(
            report,
            duration_ms=741_000,
            population=4326,
            selected=4326,
            n=4326,
            correct=1345,
            incorrect=2904,
            not_attempted=77,
            per_topic={name: TopicReport(*counts) for name, counts in TOPICS.items()},
            usage={
                "answer": {
                    "calls": 4391,
                    "prompt_tokens": 131_284,
                    "completion_tokens": 172_920,
                    "latency_s": {"p50": 1.1, "p95": 3.4, "max": 12.0},
                },
                "judge": {"calls": 4330, "prompt_tokens": 3_544_860, "completion_tokens": 8_646, "latency_s": None},
            },
        )
    )


def texts(lines: Sequence[Line]) -> list[str]:
    return [line.text for line in lines]


def summary(report: Report, **values: Any) -> list[str]:
    return texts(summary_lines(report, **values))


# -- measuring ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain café 日本 🎉", "plain café 日本 🎉"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("one\ntwo\ttab\r", r"one\ntwo\ttab\r"),
        ("a\u202eb\u2066c", r"a\u202eb\u2066c"),
        ("a\u2028b\x85c\x9b", r"a\u2028b\x85c\x9b"),
        ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
        ("half \ud83c pair", r"half \ud83c pair"),
        ("no\u00a0break\u3000wide", "no break wide"),
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("nul\x00", r"nul\x00"),
    ],
)
def test_what_a_terminal_would_act_on_is_spelled_out(text: str, shown: str) -> None:
    """Escapes, line ends, direction changes and lone surrogates are text; other scripts stay as they are."""
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("中国", 4), ("Ａ", 2), ("e\u0301", 1), ("👩\u200d🚀", 4), ("", 0)]
)
def test_columns_are_those_of_a_terminal(text: str, width: int) -> None:
    """Wide characters take two columns, combining ones none."""
    assert columns(text) == width


@pytest.mark.parametrize(
    ("text", "width", "kept"),
    [
        ("short", 5, "short"),
        ("longer", 5, "long…"),
        ("中国文化", 5, "中国…"),
        ("中国文化", 4, "中…"),
        ("ab", 1, "…"),
        ("ab", 0, ""),
    ],
)
def test_cut_keeps_to_the_width(text: str, width: int, kept: str) -> None:
    """A text too long ends in an ellipsis and never takes a column more than it has."""
    assert cut(text, width) == kept
    assert columns(cut(text, width)) <= width


def test_piles_of_combining_characters_are_bounded() -> None:
    """Characters that take no columns do not make a line endless."""
    assert len(cut("e" + "\u0301" * 100_000, 20)) <= 81


# -- before and while -----------------------------------------------------------------------------


def test_announcement_says_what_it_will_cost() -> None:
    """The line before the first request names both models and the least number of calls."""
    assert (
        announcement(4326, "qwen:qwen-max", "azure", 8652)
        == "4,326 questions to qwen:qwen-max, judged by azure: at least 8,652 calls"
    )


def test_announcement_knows_singular_and_nothing() -> None:
    """One question is no plural, and a run that costs nothing says so."""
    assert announcement(1, "hook", "azure", 1) == "1 question to hook, judged by azure: at least 1 call"
    assert announcement(2, "hook", "rules", 0) == "2 questions to hook, judged by rules: no calls to a service"


def test_announcement_of_a_resumed_run_tells_what_is_done() -> None:
    """What an earlier session has finished is told, so that the number of calls is understood."""
    line = announcement(60, "mine", "rules", 32, finished=28)
    assert line == "60 questions to mine, judged by rules, 28 finished already: at least 32 calls"


def test_announcement_of_tests_tells_the_most() -> None:
    """A test need not ask: the calls of tests are a most, alone and beside those of a dataset."""
    assert announcement(6, "mine", "rules", 0, 12).endswith("judged by rules: up to 12 calls")
    both = announcement(6, "mine", "rules", 4, 12)
    assert both.endswith("judged by rules: at least 4 calls and up to 12 calls in tests")


def test_progress_says_how_far_and_how_long() -> None:
    """Progress gives share, counts, rates, speed and the time that is left."""
    counts = Counts(n=1082, correct=445, incorrect=400, not_attempted=237)
    assert (
        progress_line(1082, 4326, counts, elapsed_s=338, width=100, in_flight=32)
        == "25 %  1,082 of 4,326  accuracy .411  attempted .527  3.2/s  about 17 min left  32 in flight"
    )


def test_progress_fits_by_leaving_out() -> None:
    """In eighty columns the least telling pieces go first, and failures stay."""
    counts = Counts(n=1082, correct=445, incorrect=400, not_attempted=235, errors=2)
    line = progress_line(1082, 4326, counts, elapsed_s=338, in_flight=32)
    assert line == "25 %  1,082 of 4,326  accuracy .411  attempted .527  2 failed  about 17 min left"
    assert progress_line(1082, 4326, counts, elapsed_s=338, width=20) == "25 %  1,082 of 4,326"


def test_progress_is_full_only_at_the_end() -> None:
    """Percent are rounded down, a finished run has no time left, and rows resumed count for no speed."""
    assert progress_line(999, 1000, Counts(), elapsed_s=0).startswith("99 %")
    assert progress_line(10, 10, Counts(n=10, correct=10), elapsed_s=4, resumed=2) == (
        "100 %  10 of 10  accuracy 1.00  attempted 1.00  2.0/s"
    )
    assert progress_line(4, 10, Counts(n=4, correct=4), elapsed_s=9, resumed=4).endswith("attempted 1.00")


def test_progress_of_nothing() -> None:
    """A run of no rows has no rates and divides by nothing."""
    assert progress_line(0, 0, Counts(), elapsed_s=0) == "100 %  0 of 0  accuracy -  attempted -"


def test_one_line_says_all(whole: Report) -> None:
    """The shortest form is one line with rates, failures and gates."""
    decided = replace(whole, gates=({"verdict": "pass"}, {"verdict": "fail"}, {"verdict": "pass"}))
    assert one_line(decided) == (
        "simple_qa_test_set.csv: 4,326 of 4,326 questions, accuracy .311 (.297-.325), attempted .317, "
        "abstention .018, hallucination .671, 2 gates pass, 1 gate fail"
    )
    assert summary(decided, verbosity=-2) == [one_line(decided)]


# -- the summary ----------------------------------------------------------------------------------

TABLE = """\
                                     in-  not    accuracy and  att.
topic                      n corr. corr. att.   95 % interval  acc. abst. hall.
all questions          4,326 1,345 2,904   77  .311 .297-.325  .317  .018  .671
Art                      550   165   374   11  .300 .263-.340  .306  .020  .680
Geography                424   136   275   13  .321 .278-.367  .331  .031  .649
History                  173    61   110    2  .353 .285-.426  .357  .012  .636
Music                    341   104   228    9  .305 .259-.356  .313  .026  .669
Other                    475   155   314    6  .326 .286-.370  .330  .013  .661
Politics                 709   207   494    8  .292 .260-.326  .295  .011  .697
Science and technology   858   257   585   16  .300 .270-.331  .305  .019  .682
Sports                   368   117   243    8  .318 .272-.367  .325  .022  .660
TV shows                 293    91   198    4  .311 .260-.366  .315  .014  .676
Video games              135    52    83    0  .385 .307-.469  .385  .000  .615
"""


def test_summary_on_eighty_columns(whole: Report) -> None:
    """Ten topics with all their figures fit eighty columns."""
    lines = summary(whole, run_dir=".simpleqa/run", out="report.json")
    assert lines[0] == "simple_qa_test_set.csv: qwen:qwen-max, judged by azure"
    assert lines[2:15] == TABLE.splitlines()
    assert lines[15:22] == [
        "",
        "answer  4,391 calls, 131,284 tokens in, 172,920 out, 1.1 s each (p95 3.4 s)",
        "judge   4,330 calls, 3,544,860 tokens in, 8,646 out",
        "time    12 min 21 s, 5.8 questions a second",
        "run     .simpleqa/run",
        "report  report.json",
        "",
    ]
    assert lines[22] == "2,904 wrong answers, the first 20; the rest is in the Report"
    assert len(lines) == 63  # a second line for each, since eighty columns are too few for one
    assert max(map(columns, lines)) <= 80


@pytest.mark.parametrize("width", [50, 60, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_screen(whole: Report, width: int) -> None:
    """Every line keeps to the width, whatever names and texts hold."""
    assert whole.per_topic is not None
    topics = {**whole.per_topic, "中国文化" * 20: TopicReport(1, 1), "\x1b[2J" * 9: TopicReport(0)}
    failing = (failed(1, "timeout", "no answer " * 40), row(2, predicted="長い答え\n" * 90), row(3, problem="?" * 300))
    gate = {"expression": "topic[中国文化].accuracy >= 0.4", "verdict": "undecided", "reason": "few rows " * 30}
    report = replace(whole, per_topic=topics, samples=failing, gates=(gate,), model="m" * 300, errors=1, correct=1344)
    assert max(map(columns, summary(report, width=width))) <= width


@pytest.mark.parametrize("width", [100, 80, 60])
def test_recorded_rows_have_a_column(width: int) -> None:
    """Where choices were only recorded the table counts them; elsewhere it has no such column."""
    lines = summary(report_of([row(1, Verdict.RECORDED), row(2)]), width=width)
    (numbers,) = (line for line in lines if line.startswith("all q"))
    assert [cell for cell in numbers.split() if cell.isdigit()] == ["2", "0", "1", "0", "1"]
    assert not any("rec" in line for line in summary(report_of([row(2)]), width=width))


def test_rows_of_the_table_align(whole: Report) -> None:
    """Rows end in the same column whatever script a topic's name is written in."""
    report = replace(
        whole, per_topic={"Art": TopicReport(1, 1), "中国文化": TopicReport(2, 1, 1), "é\u0301": TopicReport(0)}
    )
    table = summary(report)[3:7]
    assert len(set(map(columns, table))) == 1


def test_wide_screens_get_whole_words(whole: Report) -> None:
    """With the room for it the heads are written out, and no more room is taken than needed."""
    head = summary(whole, width=200)[2:4]
    for word in ("correct", "incorrect", "attempted", "abstention", "hallucination"):
        assert word in head[1]
    assert max(map(columns, summary(whole, width=200)[2:14])) < 120


def test_nothing_measured_shows_no_rates() -> None:
    """A run without a result shows dashes, not zeros, and says that it is incomplete."""
    question = Question("q0001", "?", "x")
    report = build_report(
        dataset="sample", model="a", judge="b", started_at=STARTED, duration_s=0, population=[question], results={}
    )
    lines = summary(report)
    assert lines[4].split() == ["all", "questions", "0", "0", "0", "0", *"----"]
    assert "incomplete: 0 of 1 question have a result" in lines


def test_incomplete_runs_say_how_to_go_on() -> None:
    """An incomplete run says how much is missing and what to type."""
    report = replace(report_of([row(1), row(2)]), population=9, selected=5)
    lines = summary(report, resume="pytest --simpleqa-resume latest")
    assert "incomplete: 2 of 9 questions have a result, 4 not selected" in lines
    assert "go on with: pytest --simpleqa-resume latest" in lines


def test_results_ahead_of_pytest_are_told() -> None:
    """Results that pytest has not come to explain why its own last line counts fewer."""
    text = " ".join(summary(replace(report_of([row(1), row(2)]), population=9, selected=9), ahead=1, width=120))
    assert "2 of 9 questions have a result, 1 answered ahead of pytest, whose last line lacks them" in text


def test_open_gates_stand_with_the_others() -> None:
    """A gate that stands in no Report is told below those that do, wrapped, and counted under -qq."""
    open_gate = "gate accuracy >= 0: undecided: no question of other.csv has a result; and so on"
    lines = summary_lines(report_of([row(1)]), left_open=[open_gate], width=60)
    at = next(i for i, line in enumerate(lines) if line.text.startswith("gate "))
    assert f"{lines[at].text} {lines[at + 1].text.strip()}" == open_gate
    assert lines[at].spans[0][1] == {"yellow": True}
    (brief,) = summary(report_of([row(1)]), left_open=[open_gate], verbosity=-2)
    assert brief.endswith("1 gate undecided")


def test_failures_are_told_apart_with_their_reasons() -> None:
    """Judge failures and errors are counted apart, and the five most frequent kinds are shown."""
    rows = [failed(n, "timeout", "no answer within 90 s") for n in (1, 2)]
    rows += [failed(3, "judge_unreadable", "'Hard\nto say'", predicted="x")]
    rows += [failed(4 + n, f"kind{n}", "m") for n in range(5)]
    lines = summary(report_of(rows))
    start = lines.index("1 judge failure, 7 errors: 0 of 8 have a verdict, so the rates tell nothing")
    assert lines[start + 1 : start + 3] == [
        "  2 timeout: no answer within 90 s",
        r"  1 judge_unreadable: 'Hard\nto say'",
    ]
    assert lines[start + 6 : start + 8] == ["  and 2 further reasons", ""]


def test_one_verdict_is_enough_to_have_rates() -> None:
    """Where a row has a verdict, failures are told without a word on the rates."""
    assert "1 error" in summary(report_of([row(1), failed(2, "timeout", "m")]))


@pytest.mark.parametrize("width", [200, 80, 60])
def test_the_counts_of_a_table_add_up(width: int) -> None:
    """Judge failures and errors have columns where there are any, so that the counts add up to n."""
    rows = [row(1), failed(2, "timeout", "m"), failed(3, "judge_unreadable", "hm", predicted="x"), row(4)]
    (numbers,) = (line for line in summary(report_of(rows), width=width) if line.startswith("all q"))
    n, *counts = [int(cell) for cell in numbers.split() if cell.isdigit()]
    assert (n, counts) == (4, [0, 2, 0, 1, 1])


def test_healthy_runs_have_no_failure_line() -> None:
    """Without failures no line speaks of any."""
    assert not [line for line in summary(report_of([row(1)])) if "failure" in line or "error" in line]


def test_gates_are_shown_whole() -> None:
    """A gate's line gives figures and reason, wrapped instead of cut."""
    gate = {
        "expression": "accuracy >= 0.4",
        "value": 0.2,
        "bound": 0.2,
        "interval": [0.0362, 0.6245],
        "verdict": "undecided",
        "reason": "failures 2 of 5 are above 0.01",
    }
    lines = summary_lines(report_of([row(1)], gates=[gate]))
    at = next(i for i, line in enumerate(lines) if line.text.startswith("gate "))
    assert lines[at].text == "gate accuracy >= 0.4: undecided, value .200, bound .200, 95 % .0362-.6245;"
    assert lines[at + 1].text == "     failures 2 of 5 are above 0.01"
    assert lines[at].spans[0][1] == {"yellow": True}
    part = {**gate, "interval": [0.0, 1.0], "level": 0.975, "slice_gates": 2}
    assert "97.5 % .0000-1.00" in " ".join(summary(report_of([row(1)], gates=[part])))


def test_the_judges_sentinels_are_told() -> None:
    """What the judge made of its sentinels is a plain line; where it failed too many, a red one, and so under -qq."""
    kinds = dict.fromkeys(("gold", "abstention", "other_gold"))
    good = {"n": 20, "failed": 0, "allowed": 2, "failed_checks": [], "by_kind": kinds}
    checks = [{"kind": "other_gold", "wanted": "incorrect", "verdict": None}] * 3
    bad = {**good, "failed": 3, "failed_checks": checks}
    plain, warned = (
        next(line for line in summary_lines(replace(report_of([row(1)]), sentinels=found)) if "sentinels" in line.text)
        for found in (good, bad)
    )
    assert plain.text == "the judge passed all 20 sentinels"
    assert plain.spans[0][1] == {}
    assert warned.text == "the judge failed 3 of 20 sentinels (other gold without a verdict 3): do not"
    assert warned.spans[0][1] == {"red": True, "bold": True}
    assert "the judge failed 3 of 20 sentinels" in one_line(replace(report_of([row(1)]), sentinels=bad))
    assert "sentinels" not in one_line(replace(report_of([row(1)]), sentinels=good))


def test_a_resumed_run_says_so() -> None:
    """A resumed run tells how often, and no speed: its time is that of the last session alone."""
    report = report_of([row(n) for n in range(1, 5)], resumed=2)
    assert "time    41 s since it was resumed (2 times in all)" in summary(report)


# -- wrong answers --------------------------------------------------------------------------------


def test_what_stands_around_the_model_is_named(whole: Report) -> None:
    """The summary names the wrappers, the outermost first; two runs of one model may differ in nothing else."""
    wrapped = {"answer": {"wrapped_by": [{"name": "conftest:Sources", "sources": 3}, {"name": "conftest:cached"}]}}
    assert "wrapped by conftest:Sources, conftest:cached" in summary(replace(whole, provenance=wrapped))
    assert not any(line.startswith("wrapped") for line in summary(whole))


def wrong_lines(report: Report, **values: Any) -> list[str]:
    return [line for line in summary(report, **values) if "gold: " in line]


def test_wrong_answers_are_one_line_each() -> None:
    """A wrong answer shows node id, question, gold and predicted; right ones are not shown."""
    lines = wrong_lines(report_of([row(1), row(2, Verdict.CORRECT), row(7)]), width=100)
    assert lines == [
        "sample::q0001  What is the capital of Australia?  gold: Canberra  predicted: Sydney",
        "sample::q0007  What is the capital of Australia?  gold: Canberra  predicted: Sydney",
    ]


def test_wrong_answers_show_what_they_hold() -> None:
    """Control and direction characters in an answer are shown, never sent to the terminal."""
    (line,) = wrong_lines(report_of([row(1, predicted="\x1b[31mA\nB\u202e")]), width=120)
    assert line.endswith(r"predicted: \x1b[31mA\nB\u202e")


def test_long_wrong_answers_keep_the_gold() -> None:
    """What one line does not hold has two: the question, then the gold, which has the first claim, and the answer."""
    long = row(7, problem="Who " * 50, answer="Michio Sugeno", predicted="Kazuhiko " * 90)
    lines = summary(report_of([long], dataset="simple_qa_test_set.csv"))
    assert lines[-2:] == [
        "simple_qa_test_set.csv::q0007  Who Who Who Who Who Who Who Who Who Who Who Who …",
        "    gold: Michio Sugeno  predicted: Kazuhiko Kazuhiko Kazuhiko Kazuhiko Kazuhik…",
    ]
    huge = row(7, answer="A gold " * 40, predicted="said " * 90)
    (line,) = wrong_lines(report_of([huge]), width=100)
    assert columns(line.partition("  predicted")[0]) > 45
    assert columns(line) == 100


def test_wrong_answers_are_all_told_alike() -> None:
    """Where one of them needs two lines all have two."""
    lines = summary(report_of([row(1), row(2, problem="Who " * 50)]))
    assert [line.split("  ")[0] for line in lines[-4:]] == ["sample::q0001", "", "sample::q0002", ""]


def test_huge_answers_cost_nothing() -> None:
    """An answer of millions of characters is cut before it is looked at."""
    (line,) = wrong_lines(report_of([row(1, predicted="\x1b" * 2_000_000)]))
    assert columns(line) <= 80


def test_node_id_and_repeats_name_the_item() -> None:
    """The node id is the collector's, with the repeat where questions are asked more than once."""
    report = report_of([row(1)], options={"repeats": 3})
    (line,) = wrong_lines(report, node_id=lambda item: f"tests/test_qa.py::test_it[{item}]", width=120)
    assert line.startswith("tests/test_qa.py::test_it[q0001-r1]  ")


def test_results_beyond_the_samples_can_be_given() -> None:
    """A Report without samples shows the wrong answers of the results it is given."""
    rows = [row(n) for n in range(1, 31)]
    report = report_of(rows, max_samples=0)
    assert wrong_lines(report) == []
    assert len(wrong_lines(report, results=rows)) == 20


def test_quiet_leaves_out_topics_and_wrong_answers(whole: Report) -> None:
    """Under -q the row of all questions stays, topics and wrong answers go."""
    lines = summary(whole, verbosity=-1)
    assert [line for line in lines if line.startswith("all questions")]
    assert not [line for line in lines if line.startswith("Art") or "gold: " in line]


def test_colour_changes_no_text(whole: Report) -> None:
    """With and without colour the text is the same; counts carry the colour of their verdict."""
    bright, plain = summary_lines(whole), summary_lines(whole, colour=False)
    assert texts(bright) == texts(plain)
    assert not any(markup for line in plain for _, markup in line.spans)
    total = {text.strip(): markup for text, markup in bright[4].spans}
    assert total["1,345"] == {"bold": True, "green": True}
    assert total["2,904"] == {"bold": True, "red": True}


def test_judge_usage_without_calls_is_no_line() -> None:
    """A role that asked no service has no line of cost."""
    report = report_of([row(1, answer_usage=Usage(1, 3, 4, 0.26))])
    assert [line for line in summary(report) if line.startswith(("answer", "judge"))] == [
        "answer  1 call, 3 tokens in, 4 out, 0.3 s each (p95 0.3 s)"
    ]
