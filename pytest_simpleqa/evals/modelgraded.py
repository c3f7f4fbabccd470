"""The model-graded template: a judge model makes a choice, which has a score or is only recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import DatasetError, OptionError, SpecError
from ..models.protocol import Answerer, Model
from ..records import QuestionResult
from ..rows import BadRowError
from .arguments import Arguments
from .asking import checked_prompt
from .choicejudge import ChoiceJudge, Grading, numbered
from .choices import MATCH_FNS, choices_of, scores_of
from .data import Sample, Samples, eval_dataset
from .grading import INSTRUCTIONS, GradingPrompt, as_filled, placeholders
from .protocol import Building, Eval, Nobody
from .registry import EvalSpec
from .submissions import NobodyAnswers, SampleCompletions

ARGUMENTS = (
    "samples_jsonl",
    "modelgraded_spec",
    "modelgraded_spec_args",
    "sample_kwargs",
    "eval_kwargs",
    "multicomp_n",
    "eval_type",
    "match_fn",
    "metaeval",
)
_FROM_MODELS = "from_models"


def make(spec: EvalSpec, args: Mapping[str, Any], samples: Samples, around: Building) -> Eval:
    """Return the eval of a model-graded spec; the template behind `ModelBasedClassify`. Raises SimpleQAError."""
    grading = _grading(spec, args, around)
    _require_fillings(spec, grading, samples)
    sampling = _kwargs(spec, args, "sample_kwargs")
    judging = _kwargs(spec, args, "eval_kwargs")
    if around.models and around.judge is None:
        raise OptionError(f"{spec.name}: its answers are graded by a model; add --judge-llm <alias>[:<model>]")
    return Eval(
        name=spec.name,
        dataset=eval_dataset(spec.name, samples, lambda sample: (_problem(grading, sample), _gold(sample))),
        answerer=_answerer(grading, around.models, sampling, samples),
        judge=ChoiceJudge(grading, around.judge, judging),
        metrics=metrics,
    )


def _grading(spec: EvalSpec, args: Mapping[str, Any], around: Building) -> Grading:
    given = Arguments(spec, args, *ARGUMENTS)
    name = given.text("modelgraded_spec")
    if not name:
        raise SpecError(f"{spec.name}: no modelgraded_spec found in its args; the name of one was wanted")
    said = around.registry.modelgraded(name)
    place = f"{spec.name}, model-graded spec {name!r}"
    n = _completions_wanted(spec, args, _named(around.models))
    choices = choices_of(said.get("choice_strings"), n, place)
    pairs = said.get("input_outputs")
    if not isinstance(pairs, Mapping) or not pairs:
        raise SpecError(f"{place}: 'input_outputs' is {pairs!r}; wanted which completion answers which input")
    output_template = said.get("output_template") or ""
    if n > 1 and not (isinstance(output_template, str) and "output" in set(placeholders(output_template))):
        raise SpecError(f"{place}: multicomp_n asks for {n} completions; wanted an 'output_template' with {{output}}")
    known = {*numbered(0), "output", "n"}
    if strange := set(placeholders(output_template)) - known:
        raise SpecError(f"{place}: 'output_template' has {{{strange.pop()}}}; it may have {', '.join(sorted(known))}")
    prompt = GradingPrompt.of(said.get("prompt"), place, talks_on=said.get("format_type") == "out_message")
    wanted, own = given.text("eval_type") or None, said.get("eval_type")
    if wanted is not None:
        prompt = prompt.instructed(_one_of(wanted, INSTRUCTIONS, "eval_type", spec.name), choices)
    read_as = own or wanted
    if read_as is None:
        raise SpecError(
            f"{place}: no 'eval_type' there nor in the eval's args; wanted one of {', '.join(INSTRUCTIONS)}"
        )
    return Grading(
        name=name,
        prompt=prompt,
        choices=choices,
        scores=scores_of(said.get("choice_scores"), choices, place),
        reads_from_end=str(read_as).startswith("cot_classify"),
        match_fn=_one_of(given.text("match_fn", "starts_or_endswith"), MATCH_FNS, "match_fn", spec.name),
        pairs={str(asked): str(answered) for asked, answered in pairs.items()},
        output_template=output_template,
        n=n,
        args={key: as_filled(value) for key, value in _kwargs(spec, args, "modelgraded_spec_args").items()},
        is_meta=given.flag("metaeval"),
    )


def _one_of(given: Any, known: Mapping[str, Any], key: str, place: str) -> str:
    if given not in known:
        raise SpecError(f"{place}: {key}={given!r}; wanted one of {', '.join(known)}")
    return str(given)


def _kwargs(spec: EvalSpec, args: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    given = args.get(key) or {}
    if not isinstance(given, Mapping):
        raise SpecError(f"{spec.name}: {key} is {given!r}; wanted names with values")
    inner = given.get("completion_kwargs") or {}
    return {name: value for name, value in {**given, **inner}.items() if name not in ("completion_kwargs", "n_samples")}


def _named(models: Sequence[Model]) -> int:
    """Return how many answer models the user has named."""
    return sum(model.is_named if isinstance(model, Nobody) else True for model in models)


def _completions_wanted(spec: EvalSpec, args: Mapping[str, Any], models: int) -> int:
    """Return how many completions each prompt gets; without a model (nothing is asked then) at least one."""
    given = args.get("multicomp_n", 1)
    if given == _FROM_MODELS:
        if models == 1:
            raise OptionError(f"{spec.name}: multicomp_n is from_models; wanted several answer models, found one")
        return max(models, 1)
    if type(given) is not int or given < 1:
        raise OptionError(f"{spec.name}: multicomp_n={given!r}; wanted a whole number of 1 or more, or from_models")
    if models > 1 and given != models:
        raise OptionError(
            f"{spec.name}: {models} answer models and multicomp_n={given}; wanted one for each completion"
        )
    return given


def _require_fillings(spec: EvalSpec, grading: Grading, samples: Samples) -> None:
    """Raise DatasetError for the first sample that lacks a prompt, a label, or what fills the grading prompt."""
    needed = grading.prompt.names - set(grading.pairs.values()) - grading.args.keys() - {"n"}
    samples.require(*sorted(needed), *(("choice",) if grading.is_meta else ()))
    for index, sample in enumerate(samples):
        for asked, completion in grading.pairs.items():
            place = samples.place(index)
            if completion in sample:
                continue
            if asked not in sample:
                raise DatasetError(f"{place}: no {asked!r} to ask, and no {completion!r} that stands for its answer")
            try:
                checked_prompt(sample[asked], asked)
            except BadRowError as error:
                raise DatasetError(f"{place}: {error}") from None


def _problem(grading: Grading, sample: Sample) -> str:
    return "\n\n".join(as_filled(sample[key]) for key in grading.pairs if key in sample) or as_filled(sample)


def _gold(sample: Sample) -> str:
    """Return what a sample calls right, for people and for pairing: its ideal, else the label, else the criterion."""
    found = next((sample[key] for key in ("ideal", "choice", "criteria") if sample.get(key) is not None), "")
    return as_filled(found[0] if isinstance(found, list) and len(found) == 1 else found).strip()


def _answerer(
    grading: Grading, models: Sequence[Model], params: Mapping[str, Any], samples: Sequence[Sample]
) -> Answerer:
    if not models:
        return NobodyAnswers()
    missing = {len(set(grading.pairs.values()) - sample.keys()) for sample in samples} - {0}
    each = [models[i % len(models)] for i in range(grading.n)]
    return SampleCompletions(each, grading.pairs, grading.joined, params, prompts=min(missing, default=0))


# -- what it adds up to -------------------------------------------------------------------------------


def metrics(results: Sequence[QuestionResult]) -> Mapping[str, float | int | None]:
    """Return `counts/<choice>`, and the means `score` and `metascore` where rows have any.

    Replies that make no choice are `counts/__invalid__` and in no mean: OpenAI Evals gives them the lowest score.
    """
    kept = [result.extra for result in results if result.extra and "choice" in result.extra]
    counts = Counter(str(each["choice"]) for each in kept)
    means = {
        name: sum(values) / len(values)
        for name in ("score", "metascore")
        if (values := [float(each[name]) for each in kept if name in each])
    }
    return {**{f"counts/{choice}": number for choice, number in sorted(counts.items())}, **means}
