"""Not collected where MindSpore is not installed: there is nothing to integrate with."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("mindspore") is None:
    collect_ignore_glob = ["test_*.py"]
