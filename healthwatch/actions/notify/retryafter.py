"""How long a service asks to be left alone: its Retry-After, which most of apprise's plugins keep to themselves."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from functools import wraps
from typing import Any

_VERBS = frozenset({"request", "get", "post", "put", "patch", "delete"})
_here = threading.local()


def seconds_of(header: str | None) -> float:
    """`120` or a date, in seconds from now; 0 where there is none or it makes no sense."""
    if not header:
        return 0.0
    try:
        return max(float(header), 0.0)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(header).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError, OverflowError):
        return 0.0


def listen(plugin: Any) -> None:
    """Let this plugin's module call `requests` through us, so that the status and Retry-After of an answer are seen."""
    for kind in type(plugin).__mro__:
        module = sys.modules.get(kind.__module__)
        if module is None or not kind.__module__.startswith("apprise."):
            continue
        requests = getattr(module, "requests", None)
        if requests is not None and not isinstance(requests, _Listening):
            module.requests = _Listening(requests)  # type: ignore[attr-defined]
    _here.answer = None


def answer() -> tuple[int, float] | None:
    """Status and Retry-After (seconds) of the last HTTP answer on this thread since `listen`; None without any."""
    found: tuple[int, float] | None = getattr(_here, "answer", None)
    return found


class _Listening:
    """The module `requests`, as an apprise plugin sees it."""

    def __init__(self, requests: Any) -> None:
        self._requests = requests

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._requests, name)
        return _noting(found) if name in _VERBS else found


def _noting(verb: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(verb)
    def call(*given: Any, **named: Any) -> Any:
        response = verb(*given, **named)
        _here.answer = int(response.status_code), seconds_of(response.headers.get("Retry-After"))
        return response

    return call
