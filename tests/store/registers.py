"""Requests as they may come: with handles that somebody changed on the way."""

import msgspec


def spoilt(chance, handle, whole=0.9):
    """Now and then: a secret or a token that nobody was given."""
    change = chance.choice([
        {"secret": "0" * 32}, {"secret": ""}, {"secret": "ü" * 32}, {"secret": handle.secret + "\n"},
        {"token": handle.token + 1}, {"token": 1 << 70}, {"token": -1}, {"task_id": "t0"},
    ])  # fmt: skip
    return handle if chance.random() < whole else msgspec.structs.replace(handle, **change)
