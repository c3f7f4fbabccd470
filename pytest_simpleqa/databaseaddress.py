"""The address of a database as a user types it: read, shown without its secrets, made ready to connect."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import OptionError
from .paths import typed_path
from .secret import Secret

if TYPE_CHECKING:
    import sqlalchemy as sa

_INSTALL = 'pip install "pytest-simpleqa[db]"'
_CONNECT_S = 10
"""How long a server that does not answer is waited for."""
_DRIVERS = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
"""The driver that comes with the extra, where an address names none."""
_TIMEOUT_ARGUMENT = {"psycopg": "connect_timeout", "psycopg2": "connect_timeout", "pg8000": "timeout"}
_TELLTALE = re.compile("pass|secret|token|key", re.IGNORECASE)


def engine_for(text: str, base: Path) -> tuple[sa.Engine, str, tuple[Secret, ...]]:
    """Return the engine, the address as it may be shown, and what in it may not. Raises OptionError."""
    try:
        import sqlalchemy as sa
    except ModuleNotFoundError:
        raise OptionError(f"--simpleqa-db needs SQLAlchemy: {_INSTALL}") from None
    url = _url(text, base)
    shown = url.set(query={}).render_as_string(hide_password=True)
    secrets = [url.password, *(str(value) for key, value in url.query.items() if _TELLTALE.search(key))]
    try:
        arguments = _connect_arguments(url)
        engine = sa.create_engine(url, connect_args=arguments, hide_parameters=True, pool_pre_ping=True)
    except sa.exc.NoSuchModuleError:
        word = url.get_backend_name()
        hint = "snowflake-sqlalchemy" if word == "snowflake" else "a package with its dialect"
        raise OptionError(f"--simpleqa-db {shown}: SQLAlchemy knows no {word!r}; install {hint}") from None
    except ModuleNotFoundError as error:
        raise OptionError(f"--simpleqa-db {shown}: the driver {error.name} is not installed: {_INSTALL}") from None
    return engine, shown, tuple(Secret(str(secret)) for secret in secrets if secret)


def _url(text: str, base: Path) -> sa.URL:
    import sqlalchemy as sa

    if "://" not in text:
        path = typed_path(text, base)
        if path.is_dir() or not path.parent.is_dir():
            raise OptionError(f"--simpleqa-db {path}: wanted a file for SQLite in a folder that is there, or an URL")
        return sa.URL.create("sqlite", database=str(path))
    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):  # neither's words: they may hold the password
        raise OptionError(
            "--simpleqa-db: wanted an URL as postgresql://USER:PASSWORD@HOST/DATABASE, or a path"
        ) from None
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise OptionError("--simpleqa-db sqlite://: what is in memory is gone at the end; wanted sqlite:///FILE")
    return url.set(drivername=_DRIVERS.get(url.drivername, url.drivername))


def _connect_arguments(url: sa.URL) -> dict[str, Any]:
    """Return what keeps a server that is away, or a file that another session holds, from being waited for too long."""
    if url.get_backend_name() == "sqlite":
        return {"timeout": 30}
    name = _TIMEOUT_ARGUMENT.get(url.get_driver_name())
    return {} if name is None or name in url.query else {name: _CONNECT_S}
