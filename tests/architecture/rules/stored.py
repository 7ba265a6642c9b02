"""What the rules of stored.yml find and let through: semgrep reads it, and nothing runs it.

Of two with one end the first is for all files but a few, which the `other` one is for: there it lets a line through.
"""

import importlib
import json
import runpy

# ruleid: no-loader-of-objects
import marshal

# ruleid: no-loader-of-objects
import pickle

# ruleid: no-loader-of-objects
import shelve

# ruleid: no-loader-of-objects
from pickle import loads

# ok: no-loader-of-objects
import msgspec
import yaml

MAIN = "__main__"


def loaded(row):
    # ruleid: no-loader-of-objects
    yield msgspec.msgpack.decode(row)
    # ok: no-loader-of-objects
    yield msgspec.json.decode(row)
    yield from (loads(row), pickle.loads(row), marshal.loads(row), shelve.open(row))


def hooked(row, hook):
    # ruleid: no-hook-that-makes-objects
    yield msgspec.json.decode(row, dec_hook=hook)
    # ruleid: no-hook-that-makes-objects
    yield json.loads(row, object_hook=hook)
    # ok: no-hook-that-makes-objects
    yield msgspec.json.encode(row, enc_hook=hook)


def documents(row):
    # ruleid: no-yaml-but-safe
    yield yaml.load(row, Loader=yaml.Loader)
    # ruleid: no-yaml-but-safe
    yield yaml.full_load(row)
    # ok: no-yaml-but-safe
    yield yaml.safe_load(row)
    # ok: no-yaml-but-safe
    yield yaml.load(row, Loader=yaml.SafeLoader)


def run(row, path, client):
    # ruleid: no-text-as-code, no-other-text-as-code
    yield eval(row)
    # ruleid: no-text-as-code, no-other-text-as-code
    exec(row)
    # ruleid: no-text-as-code, no-other-text-as-code
    yield compile(row, "row", "exec")
    # ruleid: no-text-as-code, no-other-text-as-code
    yield runpy.run_path(row)
    # ruleid: no-text-as-code
    yield runpy.run_path(path, run_name=MAIN)
    # ok: no-text-as-code, no-other-text-as-code
    yield client.eval("return 1", 0)


def named(row, module_name):
    # ruleid: no-import-by-stored-name, no-other-import-by-stored-name
    yield __import__(row)
    # ruleid: no-import-by-stored-name, no-other-import-by-stored-name
    yield importlib.import_module(row.kind)
    # ruleid: no-import-by-stored-name, no-other-import-by-stored-name
    yield importlib.import_module(f"relet.{row}")
    # ok: no-import-by-stored-name, no-other-import-by-stored-name
    yield importlib.import_module("relet.worker.worker")
    # ruleid: no-import-by-stored-name
    yield importlib.import_module(module_name)
