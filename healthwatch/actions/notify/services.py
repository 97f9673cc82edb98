"""The doors of a receiver: its apprise URLs, and its Alertmanager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from healthwatch.actions.notify.alertmanager import Alertmanager
from healthwatch.actions.notify.line import Answer, Pace, unhurried
from healthwatch.actions.notify.service import Service
from healthwatch.alerting.model import Notice
from healthwatch.config import Receiver


class Door(Protocol):
    """Where one URL of a receiver leads. Nothing raises; `name` is the URL, masked."""

    name: str

    def open(self) -> str | None:
        """What is wrong with the URL, None where nothing is."""
        ...

    def send(self, notice: Notice, limit: int | None = None, hurry: Callable[[], bool] = unhurried) -> Answer:
        """One attempt, which ends when the service answers or a socket times out.

        `limit` bounds the text of a message that was refused; where there is no time, `hurry`, it has no picture.
        """
        ...


def doors_of(receiver: Receiver, pace: Pace) -> tuple[Door, ...]:
    """One for each of its addresses, in their order."""
    urls: tuple[Door, ...] = tuple(Service(url, pace) for url in receiver.urls)
    return urls if receiver.alertmanager is None else (*urls, Alertmanager(receiver.alertmanager, pace))
