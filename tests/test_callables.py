"""Promises of `models/callables.py`, `models/importing.py` and `models/threads.py`."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.errors import ModelError, RunStopped, SpecError
from pytest_simpleqa.models.callables import check_callable, load_callable
from pytest_simpleqa.models.protocol import Model, complete_with
from pytest_simpleqa.models.shapes import as_chat, as_text
from pytest_simpleqa.models.threads import DaemonThreads
from pytest_simpleqa.records import Prompt, Reply

Load = Callable[..., Model]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Load an attribute of the module `app_under_test` with the given source."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def load_source(source: str, attribute: str = "f", **options: Any) -> Model:
        sys.modules.pop("app_under_test", None)
        (tmp_path / "app_under_test.py").write_text(source, encoding="utf-8")
        return load_callable(f"app_under_test:{attribute}", tmp_path, **options)

    yield load_source
    sys.modules.pop("app_under_test", None)


def ask(model: Model, prompt: Prompt = "Who?") -> Reply:
    async def once() -> Reply:
        try:
            return await model.complete(prompt)
        finally:
            await model.close()

    return asyncio.run(once())


def error_of(model: Model) -> tuple[str, str]:
    with pytest.raises(ModelError) as caught:
        ask(model)
    return caught.value.kind, caught.value.message


def spec_error(call: Callable[[], object]) -> str:
    with pytest.raises(SpecError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("source", "attribute"),
    [
        ("def f(prompt): return f'to {prompt}'", "f"),
        ("async def f(prompt): return f'to {prompt}'", "f"),
        ("async def g(prompt): return f'to {prompt}'\ndef f(prompt): return g(prompt)", "f"),
        ("class F:\n def __call__(self, prompt): return f'to {prompt}'", "F"),
        ("class F:\n async def __call__(self, prompt): return f'to {prompt}'", "F"),
        ("def make():\n return lambda prompt: f'to {prompt}'", "make()"),
        ("class F:\n @staticmethod\n def f(prompt): return f'to {prompt}'", "F.f"),
        ("import functools\nf = functools.partial(lambda sign, prompt: f'to {prompt}', '!')", "f"),
    ],
    ids=["sync", "async", "sync giving a coroutine", "class", "async class", "factory", "dotted", "partial"],
)
def test_whatever_can_be_called_answers(load: Load, source: str, attribute: str) -> None:
    """Functions, objects, classes and factories answer, sync and async, and their time is measured."""
    reply = ask(load(source, attribute))
    assert (reply.text, reply.raw, reply.calls) == ("to Who?", None, 1)
    assert reply.latency_s is not None
    assert 0 <= reply.latency_s < 5


def test_an_evals_completion_function_answers(load: Load) -> None:
    """An object of the OpenAI Evals protocol answers with its first completion and is given the parameters."""
    model = load(
        "class Result:\n"
        "    def __init__(self, text): self.text = text\n"
        "    def get_completions(self): return [self.text, 'second']\n"
        "class Fn:\n"
        "    def __call__(self, prompt, **kwargs): return Result(f'{prompt} {kwargs}')\n",
        "Fn",
        params={"temperature": 0},
    )
    assert ask(model).text == "Who? {'temperature': 0}"
    assert model.describe()["params"] == {"temperature": 0}


def test_an_evals_result_without_completions_declined(load: Load) -> None:
    """No completion at all is no answer, and no empty one."""
    model = load("class R:\n def get_completions(self): return []\ndef f(prompt): return R()")
    assert error_of(model)[0] == "declined"


def test_parameters_go_only_where_they_are_taken(load: Load) -> None:
    """A callable gets the parameters that it names, the others are left out."""
    model = load("def f(prompt, *, top_k=0): return str(top_k)", params={"top_k": 5, "temperature": 0})
    assert ask(model).text == "5"
    assert model.describe() == {
        "provider": "python",
        "model": "app_under_test:f",
        "base_url_host": None,
        "params": {"top_k": 5},
    }
    assert model.is_service


def test_parameters_of_one_call_go_under_the_users(load: Load) -> None:
    """A call's own parameters reach a callable that takes them; those of the user win."""
    model = load("def f(prompt, *, top_k=0, n=1): return f'{top_k} {n}'", params={"top_k": 5})
    assert asyncio.run(complete_with(model, "Who?", {"top_k": 1, "n": 2, "stop": "x"})).text == "5 2"


def test_chat_gets_messages(load: Load) -> None:
    """The attribute `chat = True` asks for chat messages; without it messages are rendered to text."""
    echo = "def f(prompt): return repr(prompt)\n"
    assert ask(load(echo + "f.chat = True")).text == "[{'role': 'user', 'content': 'Who?'}]"
    assert ask(load(echo), [{"role": "user", "content": "Who?"}]).text == "'Who?'"


def test_prompts_turn_into_each_other() -> None:
    """A lone message is its content, several are lines behind their speakers; a text is one user message."""
    chat: Prompt = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}]
    assert as_text(chat) == "Be brief.\nUser: Who?\nAssistant:"
    shot: Prompt = [{"role": "system", "content": "2+2?", "name": "example_user"}, *chat]
    assert as_text(shot) == "User: 2+2?\nBe brief.\nUser: Who?\nAssistant:"
    assert as_text("x") == "x"
    assert as_chat("x") == [{"role": "user", "content": "x"}]
    assert as_chat(chat) == chat


def test_a_class_is_made_once(load: Load) -> None:
    """Two models of one class share its instance, for it may hold a whole model's weights."""
    source = (
        "made = []\nclass F:\n def __init__(self): made.append(1)\n def __call__(self, prompt): return str(len(made))"
    )
    model = load(source, "F")
    again = load_callable("app_under_test:F", Path("unused"))
    assert (ask(model).text, ask(again).text) == ("1", "1")


def test_a_model_is_taken_as_it_is(load: Load) -> None:
    """An attribute that follows the Model protocol already is not wrapped."""
    model = load(
        "class M:\n"
        "    max_in_flight = None\n"
        "    is_service = True\n"
        "    async def complete(self, prompt): return None\n"
        "    async def close(self): pass\n"
        "    def describe(self): return {}\n",
        "M",
    )
    assert type(model).__name__ == "M"


def test_an_empty_string_is_an_answer(load: Load) -> None:
    """An empty string is a Reply: the engine takes it for not attempted."""
    assert ask(load("def f(prompt): return ''")).text == ""


def test_a_reply_passes_through(load: Load) -> None:
    """A Reply of the user's own keeps its counts; its text and extras are made fit to travel."""
    reply = ask(
        load(
            "from pytest_simpleqa.records import Reply\n"
            "def f(prompt): return Reply('half \\ud83c', calls=3, extra={'trace': ('a', '\\ud83c')}, latency_s=1.5)"
        )
    )
    assert reply == Reply("half \ufffd", calls=3, extra={"trace": ["a", "\ufffd"]}, latency_s=1.5)


def test_thinking_is_cut_and_kept(load: Load) -> None:
    """A think block is cut from the answer and kept in the raw text; an unclosed one means truncated."""
    reply = ask(load("def f(prompt): return '<think>1987? or 1999?</think>1987'"))
    assert (reply.text, reply.raw) == ("1987", "<think>1987? or 1999?</think>1987")
    assert error_of(load("def f(prompt): return '<think>1987? or'"))[0] == "truncated"


def test_half_a_surrogate_pair_is_replaced(load: Load) -> None:
    """A lone surrogate, which no file and no worker channel takes, becomes U+FFFD."""
    assert ask(load("def f(prompt): return 'half \\ud83c pair, café'")).text == "half \ufffd pair, café"


@pytest.mark.parametrize("kind", ["", "async "])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return None", ("declined", "python:app_under_test:f returned None")),
        ("return 42", ("exception", "python:app_under_test:f returned int; wanted str")),
        ("raise ValueError('two\\n  lines')", ("exception", "ValueError: two lines (app_under_test.py, line 2)")),
        ("raise KeyError", ("exception", "KeyError (app_under_test.py, line 2)")),
        ("raise SystemExit(3)", ("exception", "SystemExit: 3 (app_under_test.py, line 2)")),
        (
            "import asyncio; raise asyncio.CancelledError('mine')",
            ("exception", "CancelledError: mine (app_under_test.py, line 2)"),
        ),
        ("from pytest_simpleqa.records import Reply; return Reply(None)", ("exception", None)),
        ("from pytest_simpleqa.records import Reply; return Reply('x', extra={'o': object()})", ("exception", None)),
        ("from pytest_simpleqa.errors import ModelError; raise ModelError('empty', 'mine')", ("empty", "mine")),
    ],
)
def test_a_failure_is_a_typed_value(load: Load, kind: str, body: str, expected: tuple[str, str | None]) -> None:
    """Whatever a callable raises, and whatever it returns that is no text, is a ModelError in one line."""
    found_kind, message = error_of(load(f"{kind}def f(prompt):\n {body}"))
    assert found_kind == expected[0]
    assert expected[1] in (None, message)


def test_a_keyboard_interrupt_in_a_thread_is_a_failure(load: Load) -> None:
    """A callable that raises KeyboardInterrupt of its own does not interrupt the run."""
    assert error_of(load("def f(prompt): raise KeyboardInterrupt")) == (
        "exception",
        "KeyboardInterrupt (app_under_test.py, line 1)",
    )


def test_stop_iteration_in_a_thread_is_a_failure(load: Load) -> None:
    """StopIteration, which futures refuse to carry, is an error like any other."""
    assert error_of(load("def f(prompt): return next(iter(()))")) == (
        "exception",
        "StopIteration (app_under_test.py, line 1)",
    )


def test_an_error_names_the_users_own_line(load: Load) -> None:
    """What a package raises is told with the line of the user's code that called it."""
    model = load("import json\ndef f(prompt):\n return json.loads(prompt)")
    assert error_of(model)[1].endswith("(app_under_test.py, line 3)")


def test_a_long_message_is_capped(load: Load) -> None:
    """An exception's text is capped with a visible mark."""
    message = error_of(load("def f(prompt): raise ValueError('x' * 10_000)"))[1]
    assert len(message) < 350
    assert message.endswith("[...] (app_under_test.py, line 1)")


def test_the_run_can_be_stopped(load: Load) -> None:
    """RunStopped raised by a callable is left alone."""
    model = load("from pytest_simpleqa.errors import RunStopped\ndef f(prompt): raise RunStopped('no credit')")
    with pytest.raises(RunStopped, match="no credit"):
        ask(model)


def test_our_own_cancellation_goes_through(load: Load) -> None:
    """A deadline of the engine's cancels an async callable, and is no failure of it."""
    model = load("import asyncio\nasync def f(prompt): await asyncio.sleep(60)")

    async def with_deadline() -> None:
        await asyncio.wait_for(model.complete("Who?"), 0.01)

    with pytest.raises(TimeoutError):
        asyncio.run(with_deadline())


def test_sync_calls_run_side_by_side(load: Load) -> None:
    """Sync callables run in as many threads as they are given, and no more."""
    source = "import threading\nmeet = threading.Barrier(4, timeout=5)\ndef f(prompt): meet.wait(); return 'x'"
    model = load(source, threads=4)
    assert model.max_in_flight == 4

    async def four() -> list[Reply]:
        try:
            return await asyncio.gather(*(model.complete("Who?") for _ in range(4)))
        finally:
            await model.close()

    assert len(asyncio.run(four())) == 4


def test_idle_threads_end_with_the_model(load: Load) -> None:
    """After `close` no thread of the model is left."""
    before = threading.active_count()
    ask(load("def f(prompt): return 'x'"))
    assert threading.active_count() == before


def test_a_hung_call_gives_up_its_place() -> None:
    """A cancelled call that hangs does not keep the next one from running, nor does one that never began."""
    release = threading.Event()

    async def scene() -> str:
        threads = DaemonThreads(1)
        hung = asyncio.create_task(threads.run(release.wait))
        await asyncio.sleep(0.02)
        queued = asyncio.create_task(threads.run(lambda: pytest.fail("it was cancelled before it began")))
        await asyncio.sleep(0)
        queued.cancel()
        hung.cancel()
        try:
            return str(await asyncio.wait_for(threads.run(lambda: "done"), 5))
        finally:
            threads.close()

    assert asyncio.run(scene()) == "done"
    release.set()


def test_a_call_that_has_used_up_its_iterator_is_an_error_at_once() -> None:
    """`next` on an iterator that is used up raises what no future takes; it is told as a RuntimeError."""

    async def scene() -> None:
        threads = DaemonThreads(1)
        try:
            await asyncio.wait_for(threads.run(lambda: next(iter(()))), 5)
        finally:
            threads.close()

    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(scene())


def test_a_call_that_waited_takes_the_place_of_a_hung_one() -> None:
    """A call queued behind a hung one runs as soon as that one is given up."""
    release = threading.Event()

    async def scene() -> str:
        threads = DaemonThreads(1)
        hung = asyncio.create_task(threads.run(release.wait))
        await asyncio.sleep(0.02)
        queued = asyncio.create_task(threads.run(lambda: "done"))
        await asyncio.sleep(0)
        hung.cancel()
        try:
            return str(await asyncio.wait_for(queued, 5))
        finally:
            threads.close()

    assert asyncio.run(scene()) == "done"
    release.set()


def test_a_hung_call_does_not_keep_the_process_alive(tmp_path: Path) -> None:
    """A process whose callable hangs ends with its own exit code."""
    (tmp_path / "hang.py").write_text("import time\ndef f(prompt): time.sleep(600)", encoding="utf-8")
    script = (
        "import asyncio, sys, pathlib\n"
        "from pytest_simpleqa.models.callables import load_callable\n"
        f"model = load_callable('hang:f', pathlib.Path({str(tmp_path)!r}))\n"
        "async def main():\n"
        "    try: await asyncio.wait_for(model.complete('Who?'), 0.05)\n"
        "    except TimeoutError: await model.close()\n"
        "asyncio.run(main())\n"
        "sys.exit(7)\n"
    )
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")
    assert time.monotonic() - started < 30


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("app", "wanted python:package.module:attribute"),
        ("app.py:f", "name a module with dots and without .py"),
        ("my/app.py:f", "name a module with dots and without .py"),
        (":f", "wanted python:package.module:attribute"),
        ("app:", "wanted python:package.module:attribute"),
    ],
)
def test_a_malformed_spec_says_what_is_wanted(tmp_path: Path, argument: str, message: str) -> None:
    """A spec of another form is one line that shows the right form."""
    (tmp_path / "app.py").write_text("def f(prompt): return 'x'", encoding="utf-8")
    found = spec_error(lambda: load_callable(argument, tmp_path))
    assert found.startswith(f"python:{argument}: ")
    assert message in found


def test_a_missing_module_names_its_neighbours(tmp_path: Path) -> None:
    """A module that is not there is an error with the folder and what is close."""
    (tmp_path / "my_retrieval.py").touch()
    found = spec_error(lambda: load_callable("my_retreival:f", tmp_path))
    assert found == (
        f"python:my_retreival:f: no module 'my_retreival' in {tmp_path} or on the import path; "
        "did you mean my_retrieval?"
    )


def test_a_missing_attribute_names_file_and_neighbours(load: Load, tmp_path: Path) -> None:
    """An attribute that is not there is an error with the file and what is close."""
    found = spec_error(lambda: load("def answer(prompt): return 'x'", "anwser"))
    file = tmp_path / "app_under_test.py"
    assert found == (f"python:app_under_test:anwser: app_under_test ({file}) has no 'anwser'; did you mean answer?")


def test_what_cannot_be_called_is_refused(load: Load) -> None:
    """A number is no model, and its value is not shown."""
    found = spec_error(lambda: load("f = 12345"))
    assert found == "python:app_under_test:f is of type int; wanted something to call with a prompt"


def test_what_takes_no_prompt_is_refused(load: Load) -> None:
    """A function of no or of two required arguments is refused before anything is asked."""
    assert "cannot be called with one prompt" in spec_error(lambda: load("def f(): return 'x'"))
    assert "missing a required argument: 'more'" in spec_error(lambda: load("def f(prompt, more): return 'x'"))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "import no_such_dependency",
            "ModuleNotFoundError: No module named 'no_such_dependency' (app_under_test.py, line 1)",
        ),
        ("\n\nraise RuntimeError('no\\nkey')", "RuntimeError: no key (app_under_test.py, line 3)"),
        ("import sys; sys.exit(0)", "SystemExit: 0 (app_under_test.py, line 1)"),
        ("def f(:", "SyntaxError: invalid syntax (app_under_test.py, line 1)"),
    ],
)
def test_a_module_that_fails_says_why(load: Load, source: str, message: str) -> None:
    """A module that raises while it is imported is one line with the exception and its place."""
    assert spec_error(lambda: load(source)) == (f"python:app_under_test:f: importing app_under_test failed: {message}")


def test_a_class_that_fails_says_why(load: Load) -> None:
    """A class or factory that cannot be made is one line with the exception."""
    found = spec_error(lambda: load("class F:\n def __init__(self): raise OSError('no weights')", "F"))
    assert found == "python:app_under_test:F: making it failed: OSError: no weights (app_under_test.py, line 2)"
    assert "making it failed: TypeError" in spec_error(lambda: load("def make(x): pass", "make()"))


def test_checking_makes_nothing(load: Load, tmp_path: Path) -> None:
    """`check_callable` imports and looks, and neither makes a class nor calls a factory."""
    source = (
        "class F:\n def __init__(self): raise OSError\ndef make(): raise OSError\ndef f(): pass\ng = lambda prompt: ''"
    )
    load(source, "g")
    for attribute in ("F", "make()", "g"):
        check_callable(f"app_under_test:{attribute}", tmp_path)
    assert "has no 'h'" in spec_error(lambda: check_callable("app_under_test:h", tmp_path))
    assert "cannot be called" in spec_error(lambda: check_callable("app_under_test:f", tmp_path))


def test_the_folder_becomes_importable_once(load: Load, tmp_path: Path) -> None:
    """Loading twice puts the invocation directory on the import path once."""
    load("def f(prompt): return 'x'")
    load("def f(prompt): return 'x'")
    assert sys.path.count(str(tmp_path)) == 1
