"""Where a dataset comes from: a source becomes a local file, and nothing else here downloads."""

from __future__ import annotations

import difflib
import hashlib
import ipaddress
import logging
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from .errors import DatasetError
from .paths import typed_path

SAMPLE = "sample"
PINNED = {
    "simpleqa": (
        "https://openaipublic.blob.core.windows.net/simple-evals/simple_qa_test_set.csv",
        "feee3f7e7db3617e94e8fcf1977b756ec420ef8568f4e0fcbbe0e92e9d5fc032",
    ),
}
"""Known names that are downloaded: address and SHA-256."""

KNOWN_NAMES = (SAMPLE, *PINNED)
CLOUD = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs", "abfss": "adlfs"}
"""Schemes of cloud storage, which fsspec reads with the package behind each."""
TIMEOUT_S = 30.0
"""Seconds without a byte after which a download is given up."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
# What a node id, a report or a shell would take apart; `-` and `@` lead options and argument files.
_UNUSABLE_IN_NAME = re.compile(r"[:/\\\[\]\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+|^[-@]+")


def dataset_name(source: str) -> str:
    """Return the dataset's name: the known name, or the last part of the path or URL, fit to begin a node id."""
    if source in KNOWN_NAMES:
        return source
    if _SCHEME.match(source):
        parts = _split(source)
        last = unquote(parts.path.rstrip("/").rpartition("/")[2]) or parts.hostname or "dataset"
    else:
        last = Path(source).name or "dataset"
    return _UNUSABLE_IN_NAME.sub("_", last)


def fetch(source: str, *, base: Path) -> Path:
    """Turn `source` into a local file; a relative path counts from `base`.

    A download is kept in the cache (`SIMPLEQA_CACHE_DIR`, else the user's cache folder) and not fetched
    again, so that all processes of a run read the same bytes; `simpleqa` is fetched again when the kept
    file has another SHA-256. Likewise what lies in cloud storage. Raises DatasetError.
    """
    if source == SAMPLE:
        return Path(__file__).with_name("data") / "sample.csv"
    if source in PINNED:
        url, sha256 = PINNED[source]
        return _download(url, sha256)
    if _SCHEME.match(source):
        return _download(source, None)
    return _local_file(source, base)


def _local_file(source: str, base: Path) -> Path:
    path = typed_path(source, base)
    if path.is_dir():
        raise DatasetError(f"{source!r} is a folder; a dataset file was wanted")
    if not path.is_file():
        near = difflib.get_close_matches(source, KNOWN_NAMES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known names are {', '.join(KNOWN_NAMES)}"
        raise DatasetError(f"there is no file {source!r} in {base}; {hint}")
    return path


def _download(url: str, sha256: str | None) -> Path:
    """Return the cached file of `url`, downloaded if it is not there or its hash is not `sha256`."""
    parts = _split(url)
    shown = _shown(parts)
    in_cloud = parts.scheme in CLOUD
    if not in_cloud:
        _require_safe(parts)
    import pooch
    import requests

    chosen = os.environ.get("SIMPLEQA_CACHE_DIR")
    folder = typed_path(chosen, Path.cwd()) if chosen else Path(pooch.os_cache("pytest-simpleqa"))
    try:
        with _quiet(pooch.get_logger()):
            # pooch writes to a temporary name, checks the hash and renames: no half file is ever seen.
            file = pooch.retrieve(
                url,
                known_hash=sha256 and f"sha256:{sha256}",
                fname=_cache_name(url),
                path=folder,
                downloader=_copy_from_cloud if in_cloud else _stream,
            )
    except requests.RequestException as error:
        raise DatasetError(f"{shown}: {_reason(error)}; {_advice(error)}") from None
    except OSError as error:
        raise DatasetError(
            f"the cache folder {folder} cannot be used ({error.strerror}); set SIMPLEQA_CACHE_DIR to another one"
        ) from None
    except ValueError:
        found = f"the file that came has not the SHA-256 {sha256}" if sha256 else "the address cannot be used"
        raise DatasetError(f"{shown}: {found}; try again, or download the file yourself and give its path") from None
    return Path(file)


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port  # urlsplit looks at the port only when asked
    except ValueError:
        raise DatasetError("the dataset's URL cannot be read; https://HOST/PATH was wanted") from None
    return parts


def _shown(parts: SplitResult) -> str:
    """Return the URL as errors print it: without user name, password and query, which may hold a key."""
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def _require_safe(parts: SplitResult) -> None:
    """Raise DatasetError unless the URL is https, or http to this very machine."""
    if parts.hostname and (parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname))):
        return
    raise DatasetError(
        f"{_shown(parts)}: a dataset is downloaded from an https:// URL or cloud storage (s3://, gs://, az://) only"
    )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _stream(url: str, file: str, _: Any) -> None:
    """Write the body of `url` to `file`, as pooch asks for it."""
    import requests

    # pooch's own downloader follows any redirect, and leaves the connection open after a fault.
    with (
        requests.get(url, stream=True, timeout=TIMEOUT_S, hooks={"response": _guard}) as response,
        Path(file).open("wb") as out,
    ):
        response.raise_for_status()
        out.writelines(response.iter_content(1 << 16))


def _copy_from_cloud(url: str, file: str, _: Any) -> None:
    """Write the object behind `url` to `file`, as pooch asks for it."""
    parts = _split(url)
    shown = _shown(parts)
    try:
        import fsspec

        opened = fsspec.open(url, "rb")
        with Path(file).open("wb") as out, opened as source:
            shutil.copyfileobj(source, out, 1 << 20)
    except ImportError:
        raise DatasetError(
            f"{shown}: cloud storage is read through fsspec and {CLOUD[parts.scheme]}, which are not installed; "
            "pip install 'pytest-simpleqa[cloud]'"
        ) from None
    except FileNotFoundError:
        raise DatasetError(f"{shown}: there is no such object; check the address") from None
    except Exception as error:  # each storage has errors of its own, whose texts may hold a key
        raise DatasetError(
            f"{shown}: the object cannot be read ({type(error).__name__}); check the storage's credentials, or "
            "download the file yourself and give its path"
        ) from None


def _guard(response: Any, **_: Any) -> None:
    """Look at each response before its body or its redirect is followed."""
    if response.is_redirect:
        try:
            _require_safe(_split(urljoin(response.url, response.headers["location"])))
        except DatasetError:
            response.close()
            raise
    # urllib3 < 2 takes a body that was cut off for a whole one: drop when requests needs urllib3 >= 2.
    response.raw.enforce_content_length = True


def _cache_name(url: str) -> str:
    """Return a file name that is the URL's own, with the extension at its end."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "_", dataset_name(url))[-80:]
    return f"{hashlib.sha256(url.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}-{readable}"


def _reason(error: Exception) -> str:
    """Say what went wrong; the library's own text is not used, because it quotes the whole URL."""
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answered {error.response.status_code}"
    if isinstance(error, requests.Timeout) or "timed out" in str(error):
        return f"nothing came for {TIMEOUT_S:g} s"
    if isinstance(error, requests.exceptions.SSLError):
        return "the server's certificate was not accepted"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the download was cut off"
    if isinstance(error, requests.ConnectionError):
        return "the server cannot be reached"
    return f"the download failed ({type(error).__name__})"


def _advice(error: Exception) -> str:
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status is not None and 400 <= status < 500 and status not in (408, 429):
        return "check the address, or download the file yourself and give its path"
    return "try again, or download the file yourself and give its path"


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Silence pooch, which tells of every download on standard error."""
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
