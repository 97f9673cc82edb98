"""One apprise URL: the only place that knows apprise, and the only one that reveals a URL."""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

from healthwatch import pictures
from healthwatch.actions.notify import retryafter
from healthwatch.actions.notify.line import Answer, Pace, unhurried
from healthwatch.actions.notify.masking import mask_url, overheard
from healthwatch.actions.notify.text import clean, escape_html, fit, length, plain
from healthwatch.alerting.model import Notice
from healthwatch.config import Secret

_STATUS = re.compile(r"error=(\d{3})\b")
_RETRY_AFTER = re.compile(r"retry after (\d+(?:\.\d+)?)", re.IGNORECASE)
_TYPES = {"critical": "FAILURE", "warning": "WARNING"}
_TITLE_SEAM = 8  # characters by which apprise joins a title to the body where a service has no title


class Service:
    """A URL and the apprise plugin behind it, made on first use. Nothing here raises, whatever a plugin does."""

    def __init__(self, url: Secret, pace: Pace) -> None:
        self._url = url
        self._pace = pace
        self._plugin: Any = None
        self.name = mask_url(url.reveal())

    def open(self) -> str | None:
        """Make the plugin; what is wrong with the URL, None where nothing is."""
        if self._plugin is not None:
            return None
        with overheard():
            try:
                import apprise
            except ImportError as missing:
                return f"apprise can't be imported ({type(missing).__name__}): pip install apprise"
            try:
                self._plugin = apprise.Apprise.instantiate(self._url.reveal())
            except KeyboardInterrupt:  # this runs before step 1 as well, on the main thread
                raise
            except BaseException as raised:  # a plugin's own code; its text may hold the URL
                return f"apprise can't read it ({type(raised).__name__})"
        if self._plugin is None:
            return _why_not(self._url.reveal())
        _set_timeouts(self._plugin, self._url.reveal(), self._pace)
        return None

    def send(self, notice: Notice, limit: int | None = None, hurry: Callable[[], bool] = unhurried) -> Answer:
        """One attempt, which ends when the service answers or a socket times out."""
        problem = self.open()
        if problem is not None:
            return Answer(accepted=False, why=problem)
        with overheard() as heard, _picture(self._plugin, notice, limit, hurry) as picture:
            try:
                retryafter.listen(self._plugin)
                message, began = _message(self._plugin, notice, limit), time.monotonic()
                result = self._plugin.notify(**message, **picture)
            except BaseException as raised:  # whatever a plugin does must not end the thread
                return Answer(accepted=False, why=f"{type(raised).__name__} in apprise")
            return replace(_answer(result, heard), seconds=time.monotonic() - began)


@contextmanager
def _picture(plugin: Any, notice: Notice, limit: int | None, hurry: Callable[[], bool]) -> Iterator[dict[str, Any]]:
    """The picture as a file, where the service takes attachments; a message that was refused goes without."""
    plot = notice.extra.get("plot")
    takes = getattr(plugin, "attachment_support", False) and limit is None and notice.reason != "resolved"
    drawn = pictures.drawn_apart(json.dumps(plot), hurry) if plot and takes else None
    if drawn is None:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="healthwatch-") as folder:
        file = Path(folder) / f"{_file_name(notice)}.png"
        file.write_bytes(drawn)
        yield {"attach": str(file)}


def _file_name(notice: Notice) -> str:
    return re.sub(r"[^\w.-]+", "-", notice.incidents[0] if notice.incidents else "alert", flags=re.ASCII)


def _why_not(url: str) -> str:
    import apprise

    scheme, separator, _ = url.partition("://")
    if not separator:
        return "it does not begin with a scheme, such as slack:// or mailto://"
    if scheme.lower() not in apprise.NotificationManager().schemas():
        return "apprise has no service of this scheme"
    return "apprise can't use it: a part is missing or malformed, or the service needs a package"


def _set_timeouts(plugin: Any, url: str, pace: Pace) -> None:
    """A server that never answers ends an attempt, and a slow one is not asked twice; the URL's own cto and rto win."""
    if not re.search(r"[?&]cto=", url):
        plugin.socket_connect_timeout = max(plugin.socket_connect_timeout, pace.connect)
    if not re.search(r"[?&]rto=", url):
        plugin.socket_read_timeout = max(plugin.socket_read_timeout, pace.read)


def _message(plugin: Any, notice: Notice, limit: int | None) -> dict[str, Any]:
    """The arguments of the plugin's `notify`: in a format that it takes, within its limits."""
    import apprise

    format_ = _format(plugin)
    title = " ".join(clean(notice.title).split())
    joined = plugin.title_maxlen <= 0 or getattr(plugin, "overflow_amalgamate_title", False)
    title = title if joined else title[: plugin.title_maxlen]
    budget = plugin.body_maxlen - getattr(plugin, "overflow_buffer", 0)
    budget -= length(title) + _TITLE_SEAM if joined else 0
    return {
        "title": title,
        "body": fit(
            clean(notice.body),
            min(budget, limit or budget),
            convert=lambda text: _convert(text, format_),
            size=lambda text: length(_in_dialect(plugin, text, format_)),
        ),
        # plugins take nothing but the enumerations
        "notify_type": getattr(apprise.NotifyType, _type_of(notice)),
        "body_format": getattr(apprise.NotifyFormat, format_.upper()),
        "overflow": apprise.OverflowMode.TRUNCATE,
    }


def _type_of(notice: Notice) -> str:
    return "SUCCESS" if notice.reason == "resolved" else _TYPES.get(notice.severity, "INFO")


def _format(plugin: Any) -> str:
    """Markdown where the service takes it, else the format it has."""
    # apprise 1 has no resolve_format: a plugin has one format
    resolve = getattr(plugin, "resolve_format", None)
    chosen = resolve("markdown") if resolve is not None else plugin.notify_format
    return str(getattr(chosen, "value", chosen))


def _in_dialect(plugin: Any, text: str, format_: str) -> str:
    """The text as the plugin will rewrite it for its service, which makes it longer."""
    rewrite = getattr(plugin, "dialect_convert", None)
    return str(rewrite(text, format_)) if rewrite is not None else text


def _convert(markdown: str, format_: str) -> str:
    if format_ == "html":
        from apprise.conversion import convert_between

        return str(convert_between("markdown", "html", escape_html(markdown)))
    return markdown if format_ == "markdown" else plain(markdown)


def _answer(result: object, heard: Sequence[str]) -> Answer:
    """What a plugin's result means; why it failed stands in apprise's log alone."""
    # a bool or an object in apprise 2; True, False or None in apprise 1
    if result is not None and bool(result):
        return Answer(accepted=True)
    text = "\n".join(heard)
    said = _STATUS.search(text)
    asked = [float(seconds) for seconds in _RETRY_AFTER.findall(text)]
    status = int(said[1]) if said else None
    last = retryafter.answer()
    if last is not None and last[0] >= HTTPStatus.BAD_REQUEST:
        status, asked = last[0], [*asked, last[1]]
    return Answer(
        accepted=False,
        status=status,
        why=_reason(status, text),
        retry_after=max(asked, default=0.0),
    )


def _reason(status: int | None, heard: str) -> str:
    if status is not None:
        phrase = HTTPStatus(status).phrase if status in {known.value for known in HTTPStatus} else ""
        return f"HTTP {status} {phrase}".rstrip()
    return "no connection, or no answer in time" if "onnection error" in heard else "apprise could not send it"
