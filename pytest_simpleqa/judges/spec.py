"""From a spec as typed to what judges."""

from __future__ import annotations

from ..errors import SpecError
from ..models.replay import Recording
from ..models.spec import BASIC_JUDGES, Params, Surroundings, resolve_model, split_spec
from ..prompts import Template
from .judge import FunctionJudge, ModelJudge, ReplayJudge, RulesJudge
from .protocol import Judge


def resolve_judge(text: str, params: Params, template: Template, around: Surroundings, *, paper: bool = False) -> Judge:
    """Return what judges under the spec `text`; nothing is asked, opened or started yet. Raises SpecError."""
    alias, argument = split_spec(text)
    if alias == "rules":
        return RulesJudge()
    if alias in BASIC_JUDGES:
        from .basic import basic_judge

        return basic_judge(alias, params, around.questions)
    if alias == "replay":
        recording = Recording.load(argument or "", around.base)
        recording.require_verdicts()
        recording.bind(around.questions)
        recording.require_pairs()
        return ReplayJudge(recording)
    if alias == "hook":
        if around.judge_hook is None:
            raise SpecError(f"--judge-llm {text}: no conftest.py implements pytest_simpleqa_judge")
        return FunctionJudge(text, around.judge_hook)
    return ModelJudge(resolve_model(text, params, around, judges=True), template, paper=paper)
