"""Promises of `download`: a source becomes a local file, whole or not at all."""

from __future__ import annotations

import hashlib
import importlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa import download
from pytest_simpleqa.download import dataset_name, fetch
from pytest_simpleqa.errors import DatasetError

BODY = b"problem,answer\nWho?,Me\n" * 1000


class Shelf(ThreadingHTTPServer):
    """A server on loopback whose paths are faults by name: `/truncated`, `/slow`, `/404`."""

    daemon_threads = True
    body = BODY
    requests = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Desk(BaseHTTPRequestHandler):
    """Serves the shelf's body."""

    server: Shelf

    def do_GET(self) -> None:
        self.server.requests += 1
        if "404" in self.path:
            self.send_error(404)
            return
        if "away" in self.path:
            self.send_response(302)
            self.send_header("Location", "http://elsewhere.invalid/x.csv")
            self.end_headers()
            return
        if "silent" in self.path:
            time.sleep(0.6)
            return
        body = self.server.body
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2])
        if "truncated" in self.path:
            return
        if "slow" in self.path:
            self.wfile.flush()
            time.sleep(0.3)
        self.wfile.write(body[len(body) // 2 :])

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    """A running server, closed at the end."""
    server = Shelf(("127.0.0.1", 0), Desk)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder of this test."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("SIMPLEQA_CACHE_DIR", str(folder))
    return folder


def error_of(source: str, base: Path) -> str:
    with pytest.raises(DatasetError) as caught:
        fetch(source, base=base)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("sample", "sample"),
        ("simpleqa", "simpleqa"),
        ("data/simple_qa_test_set.csv", "simple_qa_test_set.csv"),
        ("/abs/my set.jsonl.gz", "my set.jsonl.gz"),
        ("https://host/a/b.csv?token=hush#x", "b.csv"),
        ("https://host/a/%E4%B8%AD%2Fb.csv", "中_b.csv"),
        ("https://user:pw@host/", "host"),
        ("dir/a::b[1]\x1b\n.csv", "a_b_1_.csv"),
        ("-k.csv", "_k.csv"),
        ("@args.csv", "_args.csv"),
    ],
)
def test_a_name_can_begin_a_node_id(source: str, name: str) -> None:
    """The name is the last part of the source, without a query and without what a node id is taken apart by."""
    assert dataset_name(source) == name


def test_paths_count_from_the_base(tmp_path: Path) -> None:
    """A relative path counts from the base, an absolute one stands."""
    file = tmp_path / "a.csv"
    file.touch()
    assert fetch("a.csv", base=tmp_path) == fetch(str(file), base=Path("/nowhere")) == file


def test_a_missing_file_names_base_and_known_names(tmp_path: Path) -> None:
    """A path that is not there is an error with the folder searched and a guess at what was meant."""
    assert error_of("gone.csv", tmp_path) == (
        f"there is no file 'gone.csv' in {tmp_path}; known names are sample, simpleqa"
    )
    assert error_of("simple_qa", tmp_path).endswith("did you mean 'simpleqa'?")
    assert error_of(".", tmp_path) == "'.' is a folder; a dataset file was wanted"


def test_the_sample_is_shipped(tmp_path: Path) -> None:
    """`sample` is a file of the package and needs no network."""
    assert fetch("sample", base=tmp_path).is_file()


@pytest.mark.parametrize(
    "source",
    ["http://example.org/a.csv", "ftp://127.0.0.1/a.csv", "hf://quiz/a.csv", "https:///a.csv", "http://10.0.0.1/a"],
)
def test_only_https_is_downloaded(source: str, tmp_path: Path) -> None:
    """Another scheme than https is refused before any connection, http to another host too."""
    assert error_of(source, tmp_path).endswith("an https:// URL or cloud storage (s3://, gs://, az://) only")


def test_a_url_that_cannot_be_read(tmp_path: Path) -> None:
    """A malformed URL is an error that does not print it: it may hold a key."""
    assert error_of("https://user:hush@[::1/a.csv", tmp_path) == (
        "the dataset's URL cannot be read; https://HOST/PATH was wanted"
    )


def test_a_download_is_kept(shelf: Shelf, cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A URL is fetched once, quietly, and found in the cache afterwards under its own extension."""
    first = fetch(f"{shelf.url}/set.csv?x=1", base=cache)
    assert first.read_bytes() == BODY
    assert (first.parent, first.name[-8:]) == (cache, "-set.csv")
    assert fetch(f"{shelf.url}/set.csv?x=1", base=cache) == first
    assert fetch(f"{shelf.url}/set.csv?x=2", base=cache) != first
    assert shelf.requests == 2
    assert capfd.readouterr() == ("", "")


def test_a_truncated_download_poisons_nothing(shelf: Shelf, cache: Path) -> None:
    """A body that is cut off is an error, leaves no file, and the next try gets the whole."""
    message = error_of(f"{shelf.url}/truncated.csv", cache)
    assert "/truncated.csv: the download was cut off; try again" in message
    assert list(cache.iterdir()) == []


def test_a_missing_address(shelf: Shelf, cache: Path) -> None:
    """A 404 is one line with the address, without password and query, and what to do."""
    host = shelf.url.removeprefix("http://")
    message = error_of(f"http://user:hush@{host}/404.csv?sig=hush", cache)
    assert message == (
        f"{shelf.url}/404.csv: the server answered 404; "
        "check the address, or download the file yourself and give its path"
    )


def test_a_server_that_is_not_there(cache: Path) -> None:
    """A refused connection is one line."""
    with socket.socket() as bound:  # bound and not listening: nobody else gets the port
        bound.bind(("127.0.0.1", 0))
        message = error_of(f"http://127.0.0.1:{bound.getsockname()[1]}/a.csv", cache)
    assert "the server cannot be reached" in message


def test_a_silent_server_is_given_up(shelf: Shelf, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that sends nothing is given up after the time limit."""
    monkeypatch.setattr(download, "TIMEOUT_S", 0.1)  # the real limit is longer than a test may take
    assert "nothing came for 0.1 s" in error_of(f"{shelf.url}/silent.csv", cache)


def test_a_redirect_to_plain_http_is_refused(shelf: Shelf, cache: Path) -> None:
    """A redirect does not lead to an address that would be refused itself."""
    message = error_of(f"{shelf.url}/away.csv", cache)
    assert message.startswith("http://elsewhere.invalid/x.csv: a dataset is downloaded from an https:// URL or cloud")
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_written(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache folder that cannot be used is named with the variable that moves it."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("SIMPLEQA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert "set SIMPLEQA_CACHE_DIR to another one" in error_of(f"{shelf.url}/a.csv", tmp_path)


def pin(monkeypatch: pytest.MonkeyPatch, url: str, body: bytes) -> None:
    """Pin `simpleqa` to a local address: the real one is not asked by a test."""
    monkeypatch.setitem(download.PINNED, "simpleqa", (url, hashlib.sha256(body).hexdigest()))


def test_a_bad_cached_file_is_fetched_again(shelf: Shelf, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The official set is kept, and fetched again when the kept file is not what was pinned."""
    pin(monkeypatch, f"{shelf.url}/set.csv", BODY)
    file = fetch("simpleqa", base=cache)
    assert fetch("simpleqa", base=cache) == file
    assert shelf.requests == 1
    file.write_bytes(BODY[:100])
    assert fetch("simpleqa", base=cache).read_bytes() == BODY
    assert shelf.requests == 2


def test_another_file_than_the_pinned_is_refused(shelf: Shelf, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A download with another hash is an error and is not kept."""
    pin(monkeypatch, f"{shelf.url}/set.csv", b"other")
    assert "the file that came has not the SHA-256" in error_of("simpleqa", cache)
    assert list(cache.iterdir()) == []


def test_several_processes_at_once_get_one_good_file(shelf: Shelf, cache: Path) -> None:
    """Processes that fetch the same slow URL at once all get the whole file, and nothing else is left."""
    code = (
        "import sys; from pathlib import Path; from pytest_simpleqa.download import fetch; "
        "print(fetch(sys.argv[1], base=Path()))"
    )
    command = [sys.executable, "-c", code, f"{shelf.url}/slow.csv"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    paths = {process.communicate(timeout=60)[0].strip() for process in processes}
    assert [Path(path).read_bytes() for path in paths] == [BODY]
    assert [str(file) for file in cache.iterdir()] == list(paths)


def test_nothing_heavy_is_imported_for_a_local_file() -> None:
    """Importing the loader and reading a local file load no download library."""
    code = (
        "import sys; from pytest_simpleqa.dataset import load_dataset; load_dataset('sample'); "
        "print([name for name in ('pooch', 'requests', 'pytest', 'pydantic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """fsspec's file system in memory, standing in for `s3://`."""
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    known = importlib.import_module("fsspec.registry")._registry  # the only way to take one out again
    monkeypatch.setitem(known, "s3", type(memory))
    yield memory
    memory.store.clear()


def test_an_object_in_cloud_storage_is_fetched_once(bucket: Any, cache: Path, tmp_path: Path) -> None:
    """What lies behind `s3://` is read through fsspec, kept in the cache, and not fetched again."""
    bucket.pipe("s3://bucket/quiz.csv", BODY)
    file = fetch("s3://bucket/quiz.csv", base=tmp_path)
    assert file.read_bytes() == BODY
    assert file.parent == cache
    bucket.store.clear()
    assert fetch("s3://bucket/quiz.csv", base=tmp_path) == file


def test_what_is_not_in_cloud_storage_is_told_without_the_key(bucket: Any, cache: Path, tmp_path: Path) -> None:
    """A missing object is named in one line that holds nothing of a key in its address, and leaves no file."""
    message = error_of("s3://id:secret@bucket/none.csv?token=secret", tmp_path)
    assert message == "s3://bucket/none.csv: there is no such object; check the address"
    assert not cache.exists() or list(cache.iterdir()) == []


def test_cloud_storage_without_its_package_names_the_extra(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the package behind a scheme is missing, the error says what to install."""
    monkeypatch.setitem(sys.modules, "adlfs", None)
    message = error_of("az://box/none.csv", tmp_path)
    assert message.endswith("fsspec and adlfs, which are not installed; pip install 'pytest-simpleqa[cloud]'")
