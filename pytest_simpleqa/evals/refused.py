"""Which evals of a registry cannot be run here, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SOLVER = "a solver plays it over several turns, and solvers are not run here"
_SEVERAL = "several models talk to each other in it, by code of the evals package alone"
_HUB = "its data lie in the Hugging Face hub, which is not read"

_REASONS: Mapping[str, str] = {
    "evals.elsuite.already_said_that.eval:AlreadySaidThat": _SOLVER,
    "evals.elsuite.ballots.eval:BallotsEval": _SEVERAL,
    "evals.elsuite.basic.match_with_solvers:MatchWithSolvers": _SOLVER,
    "evals.elsuite.bluff.eval:BluffEval": _SOLVER,
    "evals.elsuite.bugged_tools.eval:BuggedTools": _SOLVER,
    "evals.elsuite.cant_do_that_anymore.eval:CantDoThatAnymore": _SOLVER,
    "evals.elsuite.error_recovery.eval:ErrorRecovery": _SOLVER,
    "evals.elsuite.function_deduction.eval:FunctionDeductionEval": _SOLVER,
    "evals.elsuite.hr_ml_agent_bench.eval:MLAgentBench": _SOLVER,
    "evals.elsuite.identifying_variables.eval:IdentifyingVariables": _SOLVER,
    "evals.elsuite.incontext_rl.eval:InContextRl": _SOLVER,
    "evals.elsuite.lambada:Lambada": _HUB,
    "evals.elsuite.make_me_pay.eval:MakeMePay": _SOLVER,
    "evals.elsuite.make_me_say.eval:MakeMeSay": _SEVERAL,
    "evals.elsuite.mmmu.eval:MMMU": _HUB,
    "evals.elsuite.multistep_web_tasks.eval:MultistepWebTasks": _SOLVER,
    "evals.elsuite.sandbagging.mmlu_eval:MMLU": _SOLVER,
    "evals.elsuite.sandbagging.sandbagging_eval:Sandbagging": _SOLVER,
    "evals.elsuite.schelling_point.eval:SchellingPoint": _SEVERAL,
    "evals.elsuite.self_prompting.eval:SelfPrompting": _SOLVER,
    "evals.elsuite.skill_acquisition.eval:SkillAcquisition": _SOLVER,
    "evals.elsuite.steganography.eval:Steganography": _SEVERAL,
    "evals.elsuite.text_compression.eval:TextCompression": _SEVERAL,
    "evals.elsuite.track_the_stat.eval:TrackTheStat": _SOLVER,
    "evals.elsuite.translate:Translate": "its score is BLEU, which is not computed here",
    "evals.elsuite.twenty_questions.eval:TwentyQuestions": _SOLVER,
}


def why_refused(class_path: str, args: Mapping[str, Any]) -> str | None:
    """Return why an eval of that class with these arguments cannot be run here; None where it can."""
    if str(args.get("dataset", "")).startswith("hf://"):
        return _HUB
    return _REASONS.get(class_path)
