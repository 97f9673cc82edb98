"""Credentials stay out of sight: how a URL is shown, and what libraries log while they hold one."""

from __future__ import annotations

import ipaddress
import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

# Schemes whose first part is a host. With every other one it may be the token itself, as in slack://TOKEN/...
_HOSTS = frozenset(
    f"{name}{secure}" for name in ("json", "xml", "form", "mailto", "http", "apprise") for secure in ("", "s")
)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,24}")
_QUERY = re.compile(r"\?[\w+:-]+=.*")
_HOST = re.compile(r"localhost|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")


def mask_url(url: str) -> str:
    """`json://hooks.example/***`, `slack://***`: the scheme, and the host only where it can't be a credential."""
    scheme, separator, rest = url.partition("://")
    if not separator or not _NAME.fullmatch(scheme):
        return "***"
    host = _host(url, rest) if scheme.lower() in _HOSTS else None
    return f"{scheme}://{host}/***" if host else f"{scheme}://***"


def _host(url: str, rest: str) -> str | None:
    """None where the URL does not say for sure which part is its host."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in _QUERY.sub("", rest[len(authority) :]):
        return None  # a password with a bare / or # in it
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        shown = host if _HOST.fullmatch(host) else str(ipaddress.ip_address(host))
    except ValueError:
        return None
    return shown if port is None else f"{shown}:{port}"


_here = threading.local()


@contextmanager
def overheard() -> Iterator[list[str]]:
    """What libraries log on this thread while a credential is in use: it is given here and reaches no handler.

    apprise, requests and urllib3 write URLs, headers and payloads to their loggers; which logger, and at
    which level, changes with their versions. Other threads log as before.
    """
    if not isinstance(logging.getLogRecordFactory(), _Withholding):
        logging.setLogRecordFactory(_Withholding(logging.getLogRecordFactory()))
    outer = getattr(_here, "heard", None)
    heard: list[str] = []
    _here.heard = heard
    try:
        yield heard
    finally:
        _here.heard = outer


class _Withholding:
    """A log record factory that takes the text out of a listening thread's records and has them dropped."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __call__(self, name: str, *given: Any, **named: Any) -> logging.LogRecord:
        heard: list[str] | None = getattr(_here, "heard", None)
        if heard is None:
            record: logging.LogRecord = self._inner(name, *given, **named)
            return record
        heard.append(_text(*given))
        logging.getLogger(name).addFilter(_drop)
        record = logging.LogRecord(name, logging.DEBUG, "", 0, "withheld", (), None)
        record.healthwatch_withheld = True
        return record


def _text(_level: int, _file: str, _line: int, message: object, arguments: Any, *_rest: object) -> str:
    try:
        return str(message) % arguments if arguments else str(message)
    except (TypeError, ValueError, KeyError):
        return str(message)


def _drop(record: logging.LogRecord) -> bool:
    return not getattr(record, "healthwatch_withheld", False)
