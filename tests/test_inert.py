"""The installed plugin where nobody asks for it: nothing imported, nothing written, nothing said, nothing asked."""

from __future__ import annotations

import gc
import json
import re
import sys

import pytest

from tests.small_run import ASKED, write_files

THIN = {"plugin", "optiontable", "hookspecs"}
"""What a session loads of ours that has nothing to do with us."""
HEAVY = {
    "aiohttp", "dotenv", "numpy", "openai", "pooch", "pydantic", "rapidfuzz", "requests", "scipy", "xllamacpp", "yaml",
}  # fmt: skip
LOADED = """\
import json, sys
import pytest

status = pytest.main(sys.argv[1:])
names = sorted(name for name in sys.modules if name.startswith("pytest_simpleqa.") or "." not in name)
print("LOADED " + json.dumps({"status": int(status), "modules": names}))
"""
NO_NETWORK = """\
import asyncio
import socket


def refuse(*args, **kwargs):
    raise AssertionError("the network was touched")


for name in ("connect", "connect_ex", "sendto"):
    setattr(socket.socket, name, refuse)
for name in ("getaddrinfo", "gethostbyname", "create_connection"):
    setattr(socket, name, refuse)
"""


@pytest.fixture
def plain(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with one plain test, one that fails and one that is skipped."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makepyfile(
        test_plain="""
        import pytest

        def test_right():
            pass

        def test_wrong():
            assert 1 == 2

        @pytest.mark.skip
        def test_left_out():
            pass
        """
    )
    return pytester


def loaded(folder: pytest.Pytester, *args: str) -> tuple[int, set[str], str]:
    """Run pytest in a process of its own; return its status, the modules it loaded, and what it printed."""
    script = folder.path.parent / f"{folder.path.name}-loaded.py"  # outside: nothing may appear in the folder
    script.write_text(LOADED, encoding="utf-8")
    # anyio comes with the openai package and brings a pytest plugin of its own.
    result = folder.run(sys.executable, str(script), "-p", "no:anyio", "-p", "no:cacheprovider", *args)
    text, _, found = result.stdout.str().partition("LOADED ")
    content = json.loads(found)
    return content["status"], set(content["modules"]), text + result.stderr.str()


def files(folder: pytest.Pytester) -> set[str]:
    """Return the names of what lies in the folder; pytester's own two files left out."""
    return {path.name for path in folder.path.iterdir()} - {"stdout", "stderr"}


def ours(modules: set[str]) -> set[str]:
    """Return the names of our modules among `modules`."""
    return {name.removeprefix("pytest_simpleqa.") for name in modules if name.startswith("pytest_simpleqa.")}


def tops(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


@pytest.mark.parametrize("ini", ["", "simpleqa_dataset = nothing.csv\njudge_llm = nobody\nsimpleqa_concurrency = many"])
def test_a_plain_session_loads_and_writes_nothing(plain: pytest.Pytester, ini: str) -> None:
    """Without our options a session loads the thin modules alone and leaves no file, whatever the ini keys say."""
    plain.makeini(f"[pytest]\n{ini}")
    before = files(plain)
    status, modules, text = loaded(plain)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert ours(modules) <= THIN
    assert tops(modules) & HEAVY == set()
    assert files(plain) == before
    assert "simpleqa" not in re.sub(r"(?m)^(plugins|rootdir|configfile): .*$", "", text)


@pytest.mark.parametrize(
    "args", [(), ("-n2",), ("-k", "right"), ("-k", "nothing"), ("nowhere.py",), ("-vv", "--no-header")], ids=str
)
def test_a_plain_session_is_what_it_is_without_us(plain: pytest.Pytester, args: tuple[str, ...]) -> None:
    """Output and exit status are those of a session in which the plugin is off."""
    if "-n2" in args:
        args = (*args, "-q", "--no-header")
    run = plain.runpytest_subprocess if "-n2" in args else plain.runpytest_inprocess
    with_us, without = run(*args), run("-p", "no:simpleqa", *args)
    assert with_us.ret == without.ret
    if "-n2" not in args:
        assert _timeless(with_us) == _timeless(without)


def _timeless(result: pytest.RunResult) -> list[str]:
    """Return the printed lines without times and without the list of plugins."""
    lines = [line for line in (*result.outlines, *result.errlines) if not line.startswith("plugins: ")]
    return [re.sub(r"in \d+\.\d+s.*", "", line).strip("=") for line in lines]


def test_a_skipped_fixture_test_costs_little(plain: pytest.Pytester) -> None:
    """A test that takes the fixture in a session without a model is one skip, and no heavy library comes in."""
    plain.makepyfile(test_plain="def test_it(simpleqa):\n    pass\n")
    plain.makeini("[pytest]\nsimpleqa_dataset = nothing.csv\njudge_llm = nobody")
    before = files(plain)
    status, modules, text = loaded(plain)
    assert status == pytest.ExitCode.OK
    assert "1 skipped" in text
    assert ours(modules) <= THIN | {"fixtures", "errors", "records"}
    assert tops(modules) & HEAVY == set()
    assert files(plain) == before


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_work_beside_any_option(plain: pytest.Pytester, option: str) -> None:
    """--help and --version do what they do beside our options, even where these are wrong."""
    result = plain.runpytest_inprocess(option, "--simpleqa-dataset=nothing.csv", "--simpleqa-limit=x")
    assert result.ret == pytest.ExitCode.OK
    assert result.errlines == []


@pytest.mark.parametrize("how", [(), ("-n2",)], ids=["bare", "-n2"])
def test_collecting_needs_no_model_and_no_network(plain: pytest.Pytester, how: tuple[str, ...]) -> None:
    """--collect-only lists the questions without models, network, client or file."""
    write_files(plain.path, conftest__py=NO_NETWORK)
    plain.makeini("[pytest]")
    before = files(plain)
    status, modules, text = loaded(plain, "--collect-only", "-q", "--simpleqa-dataset=questions.csv", *how)
    assert status == pytest.ExitCode.OK
    ids = [line for line in text.splitlines() if "::" in line]
    assert ids == ["questions.csv::q0001", "questions.csv::q0002", "questions.csv::q0003"]
    assert tops(modules) & HEAVY == set()
    assert files(plain) == before


def test_collecting_with_models_builds_no_client(plain: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """--collect-only checks the specs that stand there, and still touches no network."""
    write_files(plain.path, conftest__py=NO_NETWORK)
    monkeypatch.setenv("SIMPLEQA_FAKE", '{"base_url": "http://127.0.0.1:1/v1"}')
    args = ("--simpleqa-dataset=questions.csv", "--answer-llm=fake:m", "--judge-llm=fake:judge")
    result = plain.runpytest_subprocess("--collect-only", "-q", *args)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["questions.csv::q0003"])
    assert not (plain.path / ".simpleqa").exists()


def test_a_recorded_run_needs_no_network(plain: pytest.Pytester) -> None:
    """A run from recordings reaches its verdicts without a connection, a name look-up or an HTTP library."""
    write_files(plain.path, conftest__py=NO_NETWORK)
    _, modules, text = loaded(plain, *ASKED)
    assert "1 correct, 1 incorrect, 1 not attempted" in text
    assert tops(modules) & HEAVY == set()


def test_importing_the_package_loads_nothing(plain: pytest.Pytester) -> None:
    """`import pytest_simpleqa` loads no heavy library and no pytest: a script pays for what it uses."""
    code = "import sys, json, pytest_simpleqa; print(json.dumps(sorted(sys.modules)))"
    modules = set(json.loads(plain.run(sys.executable, "-c", code).stdout.str()))
    assert tops(modules) & (HEAVY | {"pytest", "_pytest", "xdist"}) == set()


def test_ordinary_tests_beside_an_unasked_dataset_run_alone(plain: pytest.Pytester) -> None:
    """An ini file with a dataset and a judge leaves a plain pytest as it is."""
    write_files(plain.path)
    plain.makeini("[pytest]\nsimpleqa_dataset = questions.csv\njudge_llm = rules")
    plain.runpytest_inprocess().assert_outcomes(passed=1, failed=1, skipped=1)


def test_a_session_gives_the_collector_of_garbage_back_as_it_was(plain: pytest.Pytester) -> None:
    """While questions run Python looks for garbage less often; a session inside a process leaves it as before."""
    write_files(plain.path)
    before = gc.get_threshold()
    plain.runpytest_inprocess(*ASKED)
    assert gc.get_threshold() == before
