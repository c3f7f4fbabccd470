"""Paths as a user types them."""

from __future__ import annotations

from pathlib import Path


def typed_path(text: str, base: Path) -> Path:
    """Return the path that `text` means from the folder `base`; a `~` without a home stays as it is."""
    path = Path(text)
    try:
        return base / path.expanduser()
    except RuntimeError:
        return base / path
