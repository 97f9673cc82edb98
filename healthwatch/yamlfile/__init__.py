"""YAML with a position for every key and value. Reading never raises: what is wrong is a diagnostic."""

from __future__ import annotations

from healthwatch.yamlfile.document import Document, KeyPath, Problem, concealed
from healthwatch.yamlfile.reader import load, parse
from healthwatch.yamlfile.scalars import number_hint

__all__ = ["Document", "KeyPath", "Problem", "concealed", "load", "number_hint", "parse"]
