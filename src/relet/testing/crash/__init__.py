"""The crash kit: runs a user's own task again and again, kills or freezes whoever holds it, and judges what is left."""

from __future__ import annotations

from relet.testing.crash.examine import crash_test
from relet.testing.crash.report import CrashTestFailed, Finding, Report

__all__ = ["CrashTestFailed", "Finding", "Report", "crash_test"]
