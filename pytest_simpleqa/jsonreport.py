"""Our Reports in the file of pytest-json-report."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from .report import Report
from .reportfile import report_text
from .screen import WORDS


def put_into(json_report: dict[str, Any], reports: Iterable[Report]) -> None:
    """Add the Reports under `simpleqa`, and put pytest's own outcomes in place of our words."""
    json_report["simpleqa"] = {"runs": [json.loads(report_text(report)) for report in reports]}
    words = {word for _, word, _ in WORDS.values()}
    tests, summary = json_report.get("tests", []), json_report.get("summary", {})
    for test in tests:
        if test.get("outcome") in words:
            stage = test.get("call") or test.get("???") or {}
            test["outcome"] = stage.get("outcome", "failed")
    for word in words:
        summary.pop(word, None)
    summary.update(Counter(test["outcome"] for test in tests))
