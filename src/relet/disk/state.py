"""Where relet keeps, on this machine and for this user, what must not lie beside a store."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def state_folder() -> Path:
    """`$RELET_STATE_DIR`, else the user's own folder for state."""
    if given := os.environ.get("RELET_STATE_DIR"):
        return Path(given)
    if sys.platform == "darwin":  # pragma: no cover - one platform at a time
        return Path.home() / "Library" / "Application Support" / "relet"
    if sys.platform == "win32":  # pragma: no cover - one platform at a time
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home()))) / "relet"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "relet"
