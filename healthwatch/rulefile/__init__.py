"""Rule files: what users write, checked all at once."""

from __future__ import annotations

from healthwatch.rulefile.load import load_rules
from healthwatch.rulefile.model import Loaded, Rule
from healthwatch.rulefile.template import Template

__all__ = ["Loaded", "Rule", "Template", "load_rules"]
