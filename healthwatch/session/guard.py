"""What stands between healthwatch and the training loop: nothing that fails here gets through."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

LOGGER = logging.getLogger("healthwatch")

PASSED_ON = (KeyboardInterrupt, SystemExit, GeneratorExit)
SILENT_ABOUT = frozenset({"notify"})  # an error of these may quote a URL, and a URL is a credential


class Guard:
    """Tells the first failure of each part, counts them all, raises none. `failures` counts by part."""

    def __init__(self) -> None:
        self.failures: Counter[str] = Counter()

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        """Run a block of `part`; the block ends where it fails, the loop goes on behind it."""
        try:
            yield
        except PASSED_ON:
            raise
        except BaseException as error:  # a panic of the Rust parser is no Exception
            about = "" if part in SILENT_ABOUT else f": {error}"
            if self.tell(part, f"{part} failed ({type(error).__name__}{about}); training goes on"):
                LOGGER.debug("where %s failed", part, exc_info=part not in SILENT_ABOUT)

    def tell(self, part: str, message: str, level: int = logging.ERROR) -> bool:
        """Log a message of `part` if it is the first one, and count it; returns whether it was."""
        self.failures[part] += 1
        first = self.failures[part] == 1
        if first:
            LOGGER.log(level, "%s (told once)", message)
        return first
