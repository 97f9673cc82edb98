"""What a rule owes the person whom it wakes, under the names by which it is read."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from healthwatch.diagnostics import likely_typo
from healthwatch.rulefile.draft import Draft
from healthwatch.rulefile.lint.subject import Subject
from healthwatch.yamlfile import KeyPath

LABELS, ANNOTATIONS = ("severity",), ("summary", "action")
"""Those that healthwatch reads itself; every other name is free."""


def check(subject: Subject) -> None:
    _says_what_to_do(subject)
    draft = subject.draft
    own, group, given = (each.get("labels", {}) for each in (draft.data, draft.group, draft.override))
    _misspelt(draft, (*draft.path[:-2], "labels"), group, LABELS)
    _misspelt(draft, (*draft.path, "labels"), own, LABELS)
    _misspelt(draft, (*draft.path, "labels"), given, LABELS)
    _misspelt(draft, (*draft.path, "annotations"), draft.data.get("annotations", {}), ANNOTATIONS)


def _misspelt(draft: Draft, path: KeyPath, names: Collection[str], known: Sequence[str]) -> None:
    """Without the rule's name, so that what its group has is told once."""
    for name in names:
        meant = None if name in known else likely_typo(name, known)
        if meant is not None and meant not in names:
            message, mend = f'healthwatch does not know "{name}" among {path[-1]}', f'did you mean "{meant}"?'
            found = draft.document.at_key("HW041", message, (*path, name), severity="warning", help=mend)
            draft.diagnostics.append(found)


def _says_what_to_do(subject: Subject) -> None:
    """An alert that does not say what to do is answered by guessing."""
    draft = subject.draft
    annotations = draft.written.get("annotations", {})
    if isinstance(annotations, dict) and "action" not in annotations and not draft.told("annotations"):
        place = "annotations" if "annotations" in draft.written else "alert"
        mend = 'add annotations: {action: "what to look at, and what to do"}'
        at_key = place == "annotations"
        message = "this rule does not say what to do"
        draft.report("HW028", message, place, at_key=at_key, severity="warning", help=mend)
