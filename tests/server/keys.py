"""Keys as `relet token` makes them."""

import os

from relet.core.access import CHANCE_BYTES, Role, digest_of, new_key
from relet.core.rules.keys import MakeKey


def made_key(backend, role=Role.ADMIN, tenant="default", name=None, **more):
    """The text of a new key of a store."""
    key_id, text = new_key(os.urandom(CHANCE_BYTES))
    backend.operate(MakeKey(id=key_id, digest=digest_of(text), name=name or key_id, tenant=tenant, role=role, **more))
    return text
