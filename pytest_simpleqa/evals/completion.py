"""Completion functions of a registry, and those that come with OpenAI Evals, as models of ours: `fn:NAME`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import SpecError
from ..models.callables import CallableModel
from ..models.importing import error_line, where
from ..models.protocol import Model
from ..models.runnables import RunnableModel, is_runnable
from ..models.spec import Params, Surroundings, resolve_model
from ..records import Prompt
from .recorder import unheard
from .registry import CompletionSpec, Registry, registry_dirs
from .standin import load_class
from .thinking import EXTRACT, THINK, ThinkingModel

_REFUSED = {
    "OpenAICompletionFn": "it asks OpenAI's old endpoint for completions without a chat; write openai:MODEL",
    "RetrievalCompletionFn": "it reads embeddings that it takes for granted; write the retrieval as a python: callable",
    "LangChainMathChainCompletionFn": "its chain is gone from LangChain; name a chain of yours by python:module:chain",
    "SolverCompletionFn": "it plays a solver, and solvers are not run here",
}
"""Completion functions of OpenAI Evals that there is nothing for, by class, and what to do about it."""
_OPENAI_MODELS = ("gpt-", "chatgpt-", "o1", "o3", "o4", "text-davinci-")
"""How names of OpenAI's begin, which OpenAI Evals takes without saying whose they are."""
_LANGCHAIN = ("langchain_openai", "langchain_community.llms", "langchain_community.chat_models", "langchain.llms")
"""Where classes of LangChain's are looked for, which OpenAI Evals names without their module."""
_ARGUMENTS = {
    "OpenAIChatCompletionFn": ("model", "api_base", "api_key", "n_ctx", "extra_options"),
    "ChainOfThoughtCompletionFn": (
        "cot_completion_fn",
        "extract_completion_fn",
        "cot_template",
        "extract_answer_template",
        "registry_path",
    ),
    "LangChainLLMCompletionFn": ("llm", "llm_kwargs"),
    "LangChainChatModelCompletionFn": ("llm", "llm_kwargs", "chat_model_kwargs"),
    "DummyCompletionFn": (),
}
"""The arguments of those that there is something for."""


def completion_functions(dirs: Sequence[Path] = ()) -> Callable[[str, Params, Surroundings], Model]:
    """Return what makes the model behind `fn:NAME`, of the registries in `dirs` and the usual places.

    Nothing is read before a name is asked for.
    """
    registry = functools.cache(lambda: Registry(registry_dirs(dirs)))
    return lambda name, params, around: _Maker(registry(), around).named(name, params)


def completion_model(name: str, registry: Registry, params: Params, around: Surroundings) -> Model:
    """Return the model behind a completion function's name as OpenAI Evals takes one, or behind a spec of ours.

    `params` that are arguments of the function's class go over its `args`, the others are request parameters.
    Raises SpecError.
    """
    return _Maker(registry, around).named(name, params)


class _Maker:
    """Makes models of the names in one registry."""

    def __init__(self, registry: Registry, around: Surroundings, within: tuple[str, ...] = ()) -> None:
        self._registry = registry
        self._around = around
        self._within = within

    def named(self, name: str, params: Params) -> Model:
        if name == "dummy":
            return _dummy(name)
        try:
            spec = self._registry.completion_fn(name)
        except SpecError:
            if name.startswith("cot/"):
                return self._thinking(name, {"cot_completion_fn": name.removeprefix("cot/")}, params)
            raise
        if spec.name in self._within:
            raise SpecError(f"fn:{self._within[0]} leads back to itself, by way of {self._within[-1]}")
        return _Maker(self._registry, self._around, (*self._within, spec.name))._made(spec, params)

    def _inner(self, name: Any, params: Params) -> Model:
        """Return the model that a completion function names for its own use."""
        if not isinstance(name, str):
            raise SpecError(f"fn:{self._within[0]}: {name!r} found where the name of a completion function was wanted")
        if name == "dummy" or name.startswith("cot/") or self._knows(name):
            return self.named(name, params)
        spec = f"openai:{name}" if name.startswith(_OPENAI_MODELS) else name
        return resolve_model(spec, params, self._around)

    def _knows(self, name: str) -> bool:
        try:
            self._registry.completion_fn(name)
        except SpecError:
            return False
        return True

    def _made(self, spec: CompletionSpec, params: Params) -> Model:
        module, _, kind = spec.class_path.partition(":")
        if module.partition(".")[0] == "evals" and kind in _REFUSED:
            raise SpecError(f"fn:{spec.name} ({kind}) is not run here: {_REFUSED[kind]}")
        if module.partition(".")[0] == "evals" and kind in _ARGUMENTS:
            known = _ARGUMENTS[kind]
            args = {**spec.args, **{key: value for key, value in params.items() if key in known}}
            rest = {key: value for key, value in params.items() if key not in known}
            made: Mapping[str, Callable[[str, Mapping[str, Any], Params], Model]] = {
                "OpenAIChatCompletionFn": self._openai,
                "ChainOfThoughtCompletionFn": self._thinking,
                "DummyCompletionFn": lambda name, *_: _dummy(name),
            }
            return made.get(kind, self._langchain)(spec.name, args, rest)
        return self._of_the_user(spec, params)

    def _openai(self, name: str, args: Mapping[str, Any], params: Params) -> Model:
        said = {"OPENAI_BASE_URL": args.get("api_base"), "OPENAI_API_KEY": args.get("api_key")}
        environment = {**self._around.environment, **{key: str(value) for key, value in said.items() if value}}
        model = args.get("model")
        if not model:
            raise SpecError(f"fn:{name}: its args name no model")
        around = replace(self._around, environment=environment)
        return resolve_model(f"openai:{model}", {**(args.get("extra_options") or {}), **params}, around)

    def _thinking(self, name: str, args: Mapping[str, Any], params: Params) -> Model:
        inner = args.get("cot_completion_fn")
        if inner is None:
            raise SpecError(f"fn:{name}: its args name no cot_completion_fn, the model that thinks")
        thinker = self._inner(inner, params)
        other = args.get("extract_completion_fn")
        extractor = thinker if other in (None, inner) else self._inner(other, params)
        extract = args.get("extract_answer_template") or EXTRACT
        return ThinkingModel(name, thinker, extractor, str(args.get("cot_template") or THINK), str(extract))

    def _langchain(self, name: str, args: Mapping[str, Any], params: Params) -> Model:
        kind = _langchain_class(name, str(args.get("llm")), self._around.base)
        values = {**(args.get("llm_kwargs") or {}), **(args.get("chat_model_kwargs") or {}), **params}
        return RunnableModel(f"fn:{name}", _called(name, functools.partial(kind, **values)))

    def _of_the_user(self, spec: CompletionSpec, params: Params) -> Model:
        target = load_class(spec.class_path, (self._around.base, spec.registry_dir))
        if not inspect.isclass(target):
            return self._model(spec.name, functools.partial(target, **spec.args) if spec.args else target, params)
        takes = _named(target)
        args = {**spec.args, **{key: value for key, value in params.items() if key in takes}}
        if "registry" in takes:
            args["registry"] = self._registry
        made = _called(spec.name, functools.partial(target, **args))
        return self._model(spec.name, made, {key: value for key, value in params.items() if key not in takes})

    def _model(self, name: str, target: Any, params: Params) -> Model:
        if isinstance(target, Model):
            return target
        if is_runnable(target):
            return RunnableModel(f"fn:{name}", target)
        if not callable(target):
            raise SpecError(f"fn:{name} is of type {type(target).__name__}; wanted something to call with a prompt")
        return CompletionFunctionModel(name, target, params, self._around.threads)


class CompletionFunctionModel(CallableModel):
    """A completion function of the user's: it gets the prompt as it is, text or messages."""

    alias = "fn"

    def __init__(self, name: str, target: Callable[..., Any], params: Params, threads: int) -> None:
        sent = {key: value for key, value in params.items() if value is not None}
        super().__init__(name, _recording_nowhere(target), sent, threads)

    def _shaped(self, prompt: Prompt) -> Prompt:
        return prompt if isinstance(prompt, str) else [dict(message) for message in prompt]


def _recording_nowhere(target: Callable[..., Any]) -> Callable[..., Any]:
    """Return `target` so that what it records finds a recorder: what is asked is recorded by whoever asks."""
    call = getattr(type(target), "__call__", target)  # noqa: B004 - the method itself is looked at
    if inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(call):

        @functools.wraps(target, updated=())
        async def ask(*args: Any, **kwargs: Any) -> Any:
            with unheard():
                return await target(*args, **kwargs)

        return ask

    @functools.wraps(target, updated=())
    def call_it(*args: Any, **kwargs: Any) -> Any:
        with unheard():
            return target(*args, **kwargs)

    return call_it


def _dummy(name: str) -> Model:
    return CallableModel(name, lambda prompt: "This is a dummy response.", {}, threads=8)


def _langchain_class(name: str, llm: str, base: Path) -> Any:
    """Return a class of LangChain's, by `module:Class` or by its bare name; raises SpecError."""
    if ":" in llm:
        return load_class(llm, (base,))
    for module in _LANGCHAIN:
        try:
            return getattr(import_module(module), llm)
        except (ImportError, AttributeError):
            continue
    looked = ", ".join(_LANGCHAIN)
    raise SpecError(f"fn:{name}: no class {llm!r} in {looked}; install its package, or write llm: package.module:Class")


def _named(target: type) -> frozenset[str]:
    """Return the names of the arguments that a class is made with."""
    try:
        return frozenset(inspect.signature(target).parameters)
    except (TypeError, ValueError):
        return frozenset()


def _called(name: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except SpecError:
        raise
    except (Exception, SystemExit) as error:
        raise SpecError(f"fn:{name}: making it failed: {error_line(error)}{where(error)}") from error
