"""Words for the screen and for events, a line each: numbers, spans of time, how far a run is, how it ended."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from .metrics import Interval, Rates
from .report import Report
from .trust import doubt

_JOINERS = "\u200c\u200d"
"""Zero-width (non-)joiners: invisible, yet part of how emoji and several scripts are written."""


# -- measuring ------------------------------------------------------------------------------------


def visible(text: str) -> str:
    """Return `text` on one line, with everything that a terminal would act on, hide or refuse spelled out.

    Control and format characters (an escape, a line end, a change of writing direction) and lone
    surrogates become `\\x1b`, `\\n`, `\\u202e`, `\\ud83c`; every kind of blank becomes a space.
    """
    return text if text.isprintable() else "".join(map(_visible_character, text))


def _visible_character(character: str) -> str:
    if character.isprintable() or character in _JOINERS:
        return character
    if unicodedata.category(character) == "Zs":
        return " "
    return character.encode("unicode_escape").decode("ascii")


def columns(text: str) -> int:
    """Return how many columns of a terminal `text` takes: East Asian wide characters two, combining ones none."""
    return len(text) if text.isascii() else sum(map(_character_columns, text))


def _character_columns(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Return `text` in at most `width` columns, ending in `…` where something was left out."""
    if columns(text) <= width and len(text) <= 4 * width:
        return text
    # A pile of combining characters takes no columns, so their number is bounded as well.
    kept, used = [], 0
    for character in text[: 4 * width]:
        used += _character_columns(character)
        if used > width - 1:
            break
        kept.append(character)
    return "".join(kept) + "…" if width > 0 else ""


def shown(text: str, width: int) -> str:
    """Return what fits of a text of any length and content."""
    return cut(visible(text[: 4 * width + 1]), width)


def left(text: str, width: int) -> str:
    """Return `text` filled up with blanks on its right."""
    return text + " " * (width - columns(text))


# -- numbers and words ----------------------------------------------------------------------------


def rate(value: float | None) -> str:
    """Return a fraction in four columns: `.311`, `1.00`, `-` for none."""
    if value is None:
        return "-"
    return "1.00" if value >= 0.9995 else f"{value:.3f}".replace("0.", ".", 1)


def ends(interval: Interval | Sequence[float] | None) -> str:
    """Return both ends of an interval, nothing for none."""
    return f"{rate(interval[0])}-{rate(interval[1])}" if interval else ""


def kept_ends(interval: Sequence[float]) -> str:
    """Return both ends of an interval of the Report, in the four decimals that it keeps: rounded once, not twice."""
    return "-".join("1.00" if end == 1 else f"{end:.4f}".replace("0.", ".", 1) for end in interval)


def many(number: int, noun: str) -> str:
    """Return a number with its noun: `1 call`, `4,326 calls`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def span(seconds: float) -> str:
    """Return a time span to read: `4.1 s`, `41 s`, `12 min 3 s`, `2 h 5 min`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _about(seconds: float) -> str:
    """Return a time span that is only guessed: `40 s`, `16 min`, `2 h 5 min`."""
    if seconds < 3600:
        return f"{max(1, round(seconds))} s" if seconds < 90 else f"{round(seconds / 60)} min"
    return span(seconds)


def speed(number: int, seconds: float) -> str:
    """Return how many a second, with two or three digits."""
    a_second = number / seconds
    return f"{a_second:,.0f}" if a_second >= 10 else f"{a_second:.1f}" if a_second >= 1 else f"{a_second:.2g}"


# -- lines before and while ------------------------------------------------------------------------


def announcement(n_questions: int, answer: str, judge: str, calls: int, in_tests: int = 0, finished: int = 0) -> str:
    """Return what stands before the first request.

    `calls` is the least number of requests to a service, `in_tests` the most that tests of the user's make besides:
    a test need not ask. `finished` counts the questions that an earlier session has finished.
    """
    costs = [f"at least {many(calls, 'call')}"] if calls else []
    if in_tests:
        costs.append(f"up to {many(in_tests, 'call')}" + (" in tests" if calls else ""))
    already = f", {finished:,} finished already" if finished else ""
    cost = " and ".join(costs) or "no calls to a service"
    return f"{many(n_questions, 'question')} to {visible(answer)}, judged by {visible(judge)}{already}: {cost}"


def progress_line(
    done: int,
    total: int,
    counts: Rates,
    *,
    elapsed_s: float,
    in_flight: int = 0,
    resumed: int = 0,
    width: int = 80,
) -> str:
    """Return how far a run is: `done` of `total` rows, `resumed` of them by an earlier session.

    The least telling pieces are left out where they do not fit.
    """
    asked = done - resumed
    pieces = {
        "percent": f"{100 * done // total if total else 100} %",
        "done": f"{done:,} of {total:,}",
        "accuracy": f"accuracy {rate(counts.accuracy)}",
        "attempted": f"attempted {rate(counts.attempted_accuracy)}",
    }
    if counts.failures:
        pieces["failed"] = f"{counts.failures:,} failed"
    if asked > 0 and elapsed_s > 0:
        pieces["speed"] = f"{speed(asked, elapsed_s)}/s"
        if done < total:
            pieces["left"] = f"about {_about((total - done) * elapsed_s / asked)} left"
    if in_flight:
        pieces["in flight"] = f"{in_flight:,} in flight"
    for least_telling in ("in flight", "speed", "accuracy", "left", "failed", "attempted"):
        if columns("  ".join(pieces.values())) <= width:
            break
        pieces.pop(least_telling, None)
    return "  ".join(pieces.values())


def one_line(report: Report, left_open: int = 0) -> str:
    """Return the whole run in one line, for `-qq`; `left_open` gates stand in no Report."""
    pieces = [
        f"{report.n:,} of {many(report.population, 'question')}",
        f"accuracy {rate(report.accuracy)}" + (f" ({ends(report.interval('accuracy'))})" if report.n else ""),
        f"attempted {rate(report.attempted_accuracy)}",
        f"abstention {rate(report.abstention_rate)}",
        f"hallucination {rate(report.hallucination_rate)}",
    ]
    if report.failures:
        pieces.append(many(report.failures, "failure"))
    if why := doubt(report.sentinels):
        pieces.append(why)
    pieces += gate_words([report], left_open)
    return f"{visible(report.name)}: {', '.join(pieces)}"


def gate_words(reports: Iterable[Report], left_open: int = 0) -> list[str]:
    """Return how many gates have come to what: `2 gates pass`; `left_open` more stand in no Report, undecided."""
    found = Counter(str(gate.get("verdict")) for report in reports for gate in report.gates)
    found["undecided"] += left_open
    return [f"{many(number, 'gate')} {visible(verdict)}" for verdict, number in found.items() if number]
