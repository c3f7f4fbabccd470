"""Paths as a user types them, and names that any file system takes."""

from __future__ import annotations

import re
from pathlib import Path


def typed_path(text: str, base: Path) -> Path:
    """Return the path that `text` means from the folder `base`; a `~` without a home stays as it is."""
    path = Path(text)
    try:
        return base / path.expanduser()
    except RuntimeError:
        return base / path


def file_word(text: str, most: int = 40) -> str:
    """Return `text` as a part of a file's name: ASCII, at most so many characters, never empty."""
    return re.sub(r"[^A-Za-z0-9._]+", "_", text).strip("_.")[:most] or "x"
