"""A metric that the loop hands in under nearly the name by which a rule reads it: the rule would wait for ever."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from healthwatch.rulefile import Rule
from healthwatch.rulefile.reads import Reads
from healthwatch.stream import SeriesTable
from healthwatch.stream.catalogue import catalogue


class Unread:
    """Looks at each metric once, when it has come for the first time."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._reads: Reads | None = None
        self._version, self._looked = -1, set[str]()

    def remarks(self, table: SeriesTable) -> Iterator[str]:
        """One a metric that was surely meant to be another one."""
        if self._version == table.version:
            return
        self._version = table.version
        fresh = set(table.metrics()) - self._looked
        self._looked |= fresh
        if self._reads is None:
            self._reads = Reads.of(self._rules)
        for metric in sorted(fresh - catalogue().keys()):
            meant = self._reads.meant(metric)
            if meant is not None and meant not in self._looked:
                yield f'no rule reads "{metric}"; did you mean "{meant}"?'
