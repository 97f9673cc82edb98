"""Prometheus' Alertmanager as a receiver, by its v2 API: incidents become its alerts, which it groups and repeats."""

from __future__ import annotations

import base64
import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from healthwatch.actions.notify.line import Answer, Pace, unhurried
from healthwatch.actions.notify.masking import mask_url
from healthwatch.actions.notify.retryafter import seconds_of
from healthwatch.actions.notify.text import cut
from healthwatch.alerting.model import Notice
from healthwatch.config import Secret

PATH = "/api/v2/alerts"
LASTS = 30 * 86400.0  # an alert that fires is never called resolved because nobody repeats it


class Alertmanager:
    """One Alertmanager. A user and password before the host are sent as basic authentication."""

    def __init__(self, url: Secret, pace: Pace) -> None:
        self._url, self._pace = url, pace
        self.name = mask_url(url.reveal())

    def open(self) -> str | None:
        try:
            parts = urlsplit(self._url.reveal())
            sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            sound = False
        return None if sound else "an Alertmanager's URL is http://host:port or https://host:port"

    def send(self, notice: Notice, limit: int | None = None, hurry: Callable[[], bool] = unhurried) -> Answer:  # noqa: ARG002
        problem = self.open()
        if problem is not None:
            return Answer(accepted=False, why=problem)
        body = json.dumps([_alert(each, notice.now.time, limit) for each in notice.extra.get("alerts", ())])
        began = time.monotonic()
        return replace(self._answer(body), seconds=time.monotonic() - began)

    def _answer(self, body: str) -> Answer:
        try:
            with _opener().open(self._request(body.encode()), timeout=self._pace.read):
                return Answer(accepted=True)
        except urllib.error.HTTPError as refused:
            asked = seconds_of(refused.headers.get("Retry-After"))
            phrase = HTTPStatus(refused.code).phrase if refused.code in list(HTTPStatus) else ""
            return Answer(
                accepted=False, status=refused.code, why=f"HTTP {refused.code} {phrase}".rstrip(), retry_after=asked
            )
        except (OSError, http.client.HTTPException, ValueError):
            return Answer(accepted=False, why="no connection, or no answer in time")

    def _request(self, body: bytes) -> urllib.request.Request:
        parts = urlsplit(self._url.reveal())
        login, _, place = parts.netloc.rpartition("@")
        path = parts.path.rstrip("/")
        address = urlunsplit((parts.scheme, place, path if path.endswith(PATH) else path + PATH, parts.query, ""))
        headers = {"Content-Type": "application/json"}
        if login:
            headers["Authorization"] = "Basic " + base64.b64encode(unquote(login).encode()).decode()
        return urllib.request.Request(address, body, headers, method="POST")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST would arrive as a GET that says nothing."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_NoRedirect)


def _alert(fields: dict[str, Any], now: float, limit: int | None) -> dict[str, Any]:
    """`starts` and `ends` (None: it fires) are unix seconds in the outbox."""
    annotations = fields["annotations"]
    if limit is not None:
        annotations = {name: cut(text, limit) for name, text in annotations.items()}
    ends = fields["ends"] if fields["ends"] is not None else now + LASTS
    return {
        "labels": fields["labels"],
        "annotations": annotations,
        "startsAt": _rfc3339(fields["starts"]),
        "endsAt": _rfc3339(ends),
    }


def _rfc3339(unix: float) -> str:
    return datetime.fromtimestamp(unix, timezone.utc).isoformat(timespec="milliseconds")
