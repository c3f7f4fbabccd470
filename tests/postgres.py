"""A PostgreSQL server for tests, where this machine has one: in a folder of its own, with a password."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

PASSWORD = "pl@nted/S3cret:word"
_ENCODED = "pl%40nted%2FS3cret%3Aword"


class Postgres:
    """A server that can be stopped and started again."""

    def __init__(self, folder: Path, programs: Path, user: Sequence[str]) -> None:
        self._data = folder / "data"
        self._programs = programs
        self._as_user = user
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        word = folder / "word"
        word.write_text(PASSWORD, encoding="utf-8")
        word.chmod(0o644)
        self._run("initdb", "-U", "me", "-A", "scram-sha-256", f"--pwfile={word}", "-E", "UTF8", "--no-sync")

    @property
    def url(self) -> str:
        """The address of its only database, the password in it."""
        return f"postgresql://me:{_ENCODED}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        how = f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        self._run("pg_ctl", "-o", how, "-l", str(self._folder / "log"), "-w", "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-m", "immediate", "-w", "stop")

    def _run(self, program: str, *args: str) -> None:
        command = [*self._as_user, str(self._programs / program), "-D", str(self._data), *args]
        subprocess.run(command, check=True, cwd=self._folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """Start a server; skip the test where there is none, or nobody it would run as: it refuses to be root's."""
    found = shutil.which("initdb")
    if found is None:
        pytest.skip("there is no PostgreSQL here (initdb)")
    user: Sequence[str] = ()
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # short, and open to its user: a socket's path has 100 characters
    if getpass.getuser() == "root" or os.geteuid() == 0:
        if shutil.which("runuser") is None or "\npostgres:" not in Path("/etc/passwd").read_text(encoding="utf-8"):
            pytest.skip("PostgreSQL runs as nobody's root, and there is no user postgres")
        user = ("runuser", "-u", "postgres", "--")
        shutil.chown(folder, "postgres")
    try:
        server = Postgres(folder, Path(found).resolve().parent, user)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
