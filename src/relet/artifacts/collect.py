"""Remove artifacts that nobody names, once they are too old to belong to a commit under way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from relet.artifacts.place import NOTHING, ArtifactStore, Collected
from relet.core.border import duration_ms
from relet.core.limits import ARTIFACT_AGE_MS, ARTIFACT_AGE_MS_MIN, ARTIFACTS_PER_BATCH, SECOND_MS

Referenced = Callable[[Iterable[str]], set[str]]
"""Which of these URIs are named by anything that was committed, of any tenant."""


def collect(
    store: ArtifactStore, referenced: Referenced, older_than_s: float = ARTIFACT_AGE_MS / SECOND_MS, *,
    least_s: float = ARTIFACT_AGE_MS_MIN / SECOND_MS, dry_run: bool = False,
) -> Collected:  # fmt: skip
    """Remove what was last put at least `older_than_s` ago and is named by nobody; answers how much that was.

    With `dry_run` nothing is removed; what puts that died have left is not counted then.

    Bytes are stored before the commit that names them, so for a while nobody names them though somebody is about to.
    A put makes them young again; the age that is waited for must be longer than any client takes from its put to its
    commit. Less than an hour is therefore `Invalid`; `least_s` is for tests, which know that no commit is under way.
    """
    least_ms = duration_ms("least_s", least_s)
    age_s = duration_ms("older_than_s", older_than_s, least=least_ms) / SECOND_MS
    # One instant, taken before anybody is asked who names what: an object put after it is spared, however long
    # the rest takes. Ages judged anew at each removal would condemn what was put and named since the asking.
    before_s = store.now() - age_s
    found = store.list(age_s)
    removed, counted = NOTHING, set[str]()
    while batch := {one.uri: one.size for one in islice(found, ARTIFACTS_PER_BATCH)}:
        named = referenced(list(batch))
        for uri in batch.keys() - named:
            if not dry_run:
                removed += store.delete_older(uri, before_s)
            elif uri not in counted:
                counted.add(uri)
                removed += Collected(1, batch[uri])
    return removed if dry_run else removed + store.tidy(before_s)
