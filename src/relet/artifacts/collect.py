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
    least_s: float = ARTIFACT_AGE_MS_MIN / SECOND_MS,
) -> Collected:  # fmt: skip
    """Remove what was last put at least `older_than_s` ago and is named by nobody; answers how much that was.

    Bytes are stored before the commit that names them, so for a while nobody names them though somebody is about to.
    A put makes them young again; the age that is waited for must be longer than any client takes from its put to its
    commit. Less than an hour is therefore `Invalid`; `least_s` is for tests, which know that no commit is under way.
    """
    least_ms = duration_ms("least_s", least_s)
    age_s = duration_ms("older_than_s", older_than_s, least=least_ms) / SECOND_MS
    # One instant, taken before anybody is asked who names what: an object put after it is spared, however long
    # the rest takes. Ages judged anew at each removal would condemn what was put and named since the asking.
    before_s = store.now() - age_s
    found = (one.uri for one in store.list(age_s))
    removed = NOTHING
    while batch := dict.fromkeys(islice(found, ARTIFACTS_PER_BATCH)):
        named = referenced(list(batch))
        for uri in batch:
            if uri not in named:
                removed += store.delete_older(uri, before_s)
    return removed + store.tidy(before_s)
