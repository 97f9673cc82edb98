"""What stands between healthwatch and the training loop: nothing that fails here gets through."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from healthwatch.session.meter import Meter

LOGGER = logging.getLogger("healthwatch")

PASSED_ON = (KeyboardInterrupt, SystemExit, GeneratorExit)
SILENT_ABOUT = frozenset({"notify"})  # an error of these may quote a URL, and a URL is a credential


_MOST_TOLD = 5
"""Different failures of one part are told; a message that says something else every time must not fill the log."""


class Guard:
    """Tells each failure of each part once, counts them all, raises none; and knows what each part costs.

    `failures` counts by part.
    """

    def __init__(self) -> None:
        self.failures: Counter[str] = Counter()
        self._told: dict[str, set[str]] = defaultdict(set)
        self.meter = Meter()

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        """Run a block of `part`; the block ends where it fails, the loop goes on behind it."""
        measured = self.meter.enter(part)
        try:
            yield
        except PASSED_ON:
            raise
        except BaseException as error:  # a panic of the Rust parser is no Exception
            self.tell(part, f"{part} failed ({_about(part, error)}); training goes on")
        finally:
            if measured:
                self.meter.leave()

    def tell(self, part: str, message: str, level: int = logging.ERROR) -> None:
        """Log a message of `part` if it is a new one, and count it."""
        self.failures[part] += 1
        told = self._told[part]
        if message not in told and len(told) < _MOST_TOLD:
            told.add(message)
            self.say(f"{message} (told once)", level)

    def sum_up(self) -> None:
        """One line that says how often each part failed; none if nothing did."""
        if self.failures:
            counts = ", ".join(f"{part} ({count} times)" for part, count in self.failures.most_common())
            self.say(f"problems of this run: {counts}", logging.WARNING)

    def say(self, message: str, level: int) -> None:
        with suppress(Exception):  # a log handler of the user's may be what fails
            LOGGER.log(level, "%s", message)


def _about(part: str, error: BaseException) -> str:
    if part in SILENT_ABOUT:
        return type(error).__name__
    with suppress(Exception):
        return f"{type(error).__name__}: {error}"
    return type(error).__name__
