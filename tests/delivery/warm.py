"""Imported by the process that children are forked from: what takes a second to import is there already."""

from __future__ import annotations

import tempfile
from pathlib import Path

import apprise
from killable import write_config

import healthwatch.session.opening  # noqa: F401 - to have it imported
from healthwatch.config import load_all

apprise.Apprise.instantiate("json://127.0.0.1/")
with tempfile.TemporaryDirectory() as folder:
    load_all(write_config(Path(folder), ["json://127.0.0.1/"]))
