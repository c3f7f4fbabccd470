"""--simpleqa-ask-confidence: the question is asked with the request, the answer judged without what it states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pytest_simpleqa.prompts import CONFIDENCE_REQUEST
from tests.fake_server import FakeServer
from tests.small_run import ASKED, error_line, report_of, run_json_of, write_files

SERVED = ("--simpleqa-dataset=questions.csv", "--answer-llm=fake:model", "--judge-llm=fake:judge")
ASKING = (*SERVED, "--simpleqa-ask-confidence")
SAYS = {"one and one": "2\nConfidence: 95%", "France": "Lyon (60%)", "Spain": "Madrid, I am rather sure"}


def reply(body: dict[str, Any], nth: int) -> str | None:
    prompt = body["messages"][-1]["content"]
    if "judge" in body["model"]:
        return None
    assert prompt.endswith(f"?\n\n{CONFIDENCE_REQUEST}")
    return next(said for part, said in SAYS.items() if part in prompt)


@pytest.fixture
def server(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    """A server that states two confidences in three answers, and a folder with these questions."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    write_files(pytester.path)
    with FakeServer() as server:
        server.script(reply)
        for variable, value in server.environment().items():
            monkeypatch.setenv(variable, value)
        yield server


@pytest.mark.parametrize("mode", [(), ("-n0",), ("-n2",)], ids=["bare", "n0", "n2"])
def test_the_judge_never_sees_the_confidence(
    pytester: pytest.Pytester, server: FakeServer, mode: tuple[str, ...]
) -> None:
    """The answer is judged and kept without its confidence, which stands beside it; the whole text stays in `raw`."""
    pytester.runpytest_subprocess(*ASKING, *mode)
    report = report_of(pytester.path)
    assert [row["predicted"] for row in report["samples"]] == ["2", "Lyon", SAYS["Spain"]]
    assert [row["verdict"] for row in report["samples"]] == ["correct", "incorrect", "incorrect"]
    assert [row.get("extra") for row in report["samples"]] == [{"confidence": 0.95}, {"confidence": 0.6}, None]
    assert [row.get("raw") for row in report["samples"]] == [SAYS["one and one"], SAYS["France"], None]
    assert len(server.judgements) == 3
    assert not any("95%" in request.prompt or "60%" in request.prompt for request in server.judgements)
    found = report["calibration"]
    assert (found["n"], found["no_confidence"], found["accuracy"]) == (2, 1, 0.5)
    assert found["brier"] == pytest.approx((0.05**2 + 0.6**2) / 2)


def test_it_may_stand_in_the_ini_file(pytester: pytest.Pytester, server: FakeServer) -> None:
    """As an ini key it does the same, around a prompt of the user's own."""
    pytester.makeini("[pytest]\nsimpleqa_ask_confidence = true\n")
    pytester.runpytest_inprocess(*SERVED, "--simpleqa-answer-prompt=Briefly: {question}")
    assert all(request.prompt.startswith("Briefly: ") for request in server.answers)
    assert report_of(pytester.path)["options"]["ask_confidence"] is True


def test_it_is_part_of_what_a_run_asks(pytester: pytest.Pytester, server: FakeServer) -> None:
    """run.json and provenance have the prompt as it is sent, and a run is not gone on with the other way."""
    pytester.runpytest_inprocess(*ASKING)
    prompt = run_json_of(pytester.path)["answer_prompt"]
    assert prompt["text"].endswith(CONFIDENCE_REQUEST)
    assert report_of(pytester.path)["provenance"]["answer_prompt_sha256"] == prompt["sha256"]
    asked = len(server.requests)
    assert "answer_prompt text" in error_line(pytester.runpytest_inprocess(*SERVED, "--simpleqa-resume=latest"))
    pytester.runpytest_inprocess(*ASKING, "--simpleqa-resume=latest")
    assert len(server.requests) == asked
    assert report_of(pytester.path)["calibration"]["n"] == 2


def test_what_is_sent_no_prompt_cannot_be_asked(pytester: pytest.Pytester, server: FakeServer) -> None:
    """A recording and a hook are refused in one line that says what they can do instead."""
    said = error_line(pytester.runpytest_inprocess(*ASKED, "--simpleqa-ask-confidence"))
    assert "replay is sent no prompt that could ask; a recording has a column 'confidence'" in said
    pytester.makeconftest("def pytest_simpleqa_answer(question, config): return 'x'")
    said = error_line(pytester.runpytest_inprocess(*ASKING, "--answer-llm=hook"))
    assert "hook is sent no prompt that could ask" in said
    assert server.requests == []


def test_what_a_wrapper_asks_counts_as_well(pytester: pytest.Pytester, server: FakeServer) -> None:
    """The request reaches a wrapper with the prompt, and the confidence is taken out of what it answers."""
    pytester.makeconftest(
        """
        def pytest_simpleqa_wrap(config):
            async def politely(question, prompt, complete, repeat):
                return await complete("Please: " + prompt)
            return politely
        """
    )
    pytester.runpytest_inprocess(*ASKING)
    assert all(request.prompt.startswith("Please: ") for request in server.answers)
    assert [row["predicted"] for row in report_of(pytester.path)["samples"]] == ["2", "Lyon", SAYS["Spain"]]
