"""The embedded servers of one run: one for each model file, started where the first need arises."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from .local import LocalServer
from .spec import LocalAddress


class Embedded:
    """The embedded servers of this run: started here once, or running in another process already."""

    def __init__(self, running: Mapping[str, LocalAddress] | None = None) -> None:
        self.paths: tuple[Path, ...] = ()
        """The model files that the specs of this run name."""
        self.addresses = dict(running or {})
        self._servers: list[LocalServer] = []
        self._lock = threading.Lock()

    def address(self, path: Path) -> LocalAddress:
        """Return where the server for the model file `path` listens; start it where there is none. Raises SpecError."""
        with self._lock:
            if str(path) not in self.addresses:
                server = LocalServer(path)
                self._servers.append(server)
                self.addresses[str(path)] = LocalAddress(server.base_url, server.model_name)
            return self.addresses[str(path)]

    def start(self) -> None:
        """Start a server for each model file of this run. Raises SpecError where one will not start."""
        for path in self.paths:
            self.address(path)

    def stop(self) -> None:
        """Stop what was started here; a second time does nothing."""
        for server in self._servers:
            server.stop()
        self._servers.clear()
