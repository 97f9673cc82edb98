"""On which core a process runs.

On two, MindSpore's threads wait for each other by spinning, which takes half of the processor time there is; on one,
whoever waits gives way.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_core(number: int = 0) -> Iterator[None]:
    """Processes that start in here keep to one core; different numbers are different cores as far as there are any."""
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(everywhere)[number % len(everywhere)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, everywhere)
