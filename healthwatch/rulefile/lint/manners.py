"""What a rule owes the person whom it wakes."""

from __future__ import annotations

from healthwatch.rulefile.lint.subject import Subject


def check(subject: Subject) -> None:
    """An alert that does not say what to do is answered by guessing."""
    draft = subject.draft
    annotations = draft.written.get("annotations", {})
    if isinstance(annotations, dict) and "action" not in annotations:
        place = "annotations" if "annotations" in draft.written else "alert"
        mend = 'add annotations: {action: "what to look at, and what to do"}'
        at_key = place == "annotations"
        message = "this rule does not say what to do"
        draft.report("HW028", message, place, at_key=at_key, severity="warning", help=mend)
