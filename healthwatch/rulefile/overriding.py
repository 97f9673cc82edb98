"""Problems of a rule that only the override of a config has brought about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from healthwatch.diagnostics import Diagnostic
from healthwatch.rulefile.draft import Draft
from healthwatch.yamlfile import KeyPath


@dataclass(frozen=True, slots=True)
class Overridden:
    """`found` stands at the rule, its cause at `path` of the rule's override."""

    rule: str
    path: KeyPath
    found: Diagnostic


def brought_about(draft: Draft, judge: Callable[[Draft], object], found: Sequence[Diagnostic]) -> Iterator[Overridden]:
    """Which of what was found is gone where one value of the override is left out; each once."""
    left = list(found)
    for path in [(key, name) for key in ("params", "labels") for name in draft.override.get(key, {})] if left else ():
        key, name = path
        others = {each: value for each, value in draft.override[key].items() if each != name}
        alone = replace(draft, override={**draft.override, key: others}, diagnostics=[], expressions={}, partial={})
        judge(alone)
        caused = [each for each in left if each not in alone.diagnostics]
        left = [each for each in left if each not in caused]
        yield from (Overridden(draft.name, path, each) for each in caused)
