"""Regular expressions in equalities, which no label's value is equal to."""

from __future__ import annotations

import json
import re

from healthwatch.rulefile.lint.subject import Subject, selectors

_REGEX = re.compile(
    r"[.][*+]"  # any characters
    r"|[|]"  # one or the other
    r"|^\^|[$]$"  # an end
    r"|\[[^\]]*[^\]]-[^\]]+\]|\[[^\]]+\][*+?]"  # characters of a kind, which [0] in a name is not
    r"|\\[.dwsDWS]"
)


def check(subject: Subject) -> None:
    """Names of parameters have dots and numbers: only what no name has is taken for a regular expression."""
    for key, tree in subject.trees():
        for node in selectors(tree):
            for matcher in node.matchers:
                if matcher.op not in ("=", "!=") or not _REGEX.search(matcher.value):
                    continue
                op = {"=": "=~", "!=": "!~"}[matcher.op]
                message = (
                    f'"{matcher.value}" looks like a regular expression, and {matcher.op} compares the text itself'
                )
                text = json.dumps(matcher.value, ensure_ascii=False)
                mend = f"write {matcher.name}{op}{text}"
                if not subject.written(key):
                    mend = f"write select: {{{matcher.name}: {json.dumps(op + matcher.value, ensure_ascii=False)}}}"
                subject.report("HW049", message, key, matcher.span, mend, "warning")
