"""What must be true of a finished demo. Every check returns what is wrong, in words."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from examples.moe_pretrain.evidence import Evidence, naive
from examples.moe_pretrain.expected import PLACES, PLANTED, Planted
from examples.moe_pretrain.receivers import Received
from examples.moe_pretrain.train import MICRO_BATCHES
from healthwatch.alerting.message import place_text
from healthwatch.alerting.model import Incident, Notice

TICKS = 1_000_000  # a step
CAPTURED_STEPS = 3
PARAMETERS, ROUTINGS = 20, 4  # Adam updates a step; top-k choices a step: 2 layers in 2 micro-batches
OPERATOR = re.compile(r"(?:^|/)(\w+?)(?:-op\d+)?$")  # "TopK" of "Default/TopK-op0"


def incidents(evidence: Evidence) -> list[str]:
    """Each begins, opens and ends at the steps that the naive evaluator computes; there are no others."""
    expected = {(one.rule, one.opened): (one.since, one.ended) for one in evidence.second_opinion}
    seen = {
        (one.rule, one.opened.step): (since(one), one.ended.step if one.ended else None) for one in evidence.incidents
    }
    problems = [f"{rule} opened at {step}, which nobody expected" for rule, step in seen.keys() - expected.keys()]
    problems += [f"{rule} did not open at {step}" for rule, step in expected.keys() - seen.keys()]
    problems += [
        f"{rule} of {step} lasted from tick {seen[rule, step]} to a step instead of {expected[rule, step]}"
        for rule, step in seen.keys() & expected.keys()
        if seen[rule, step] != expected[rule, step]
    ]
    return problems


def since(incident: Incident) -> int:
    """The tick of its first breach: where in the step its micro-batch ended."""
    before = (incident.since.step - 1) * TICKS
    return before + TICKS * (incident.micro_step or MICRO_BATCHES) // MICRO_BATCHES


def alerts(evidence: Evidence) -> list[str]:
    """The same label sets fire at the same steps."""
    expected = {(one.rule, step, labels) for one in evidence.second_opinion for step, labels in one.fired}
    fired = {(one.rule, one.now.step, one.labels) for one in evidence.transitions if one.reason == "fired"}
    return [f"{rule}{dict(labels)} fired at {step} on one side only" for rule, step, labels in expected ^ fired]


def faults(evidence: Evidence) -> list[str]:
    """Every planted fault is found by each of its rules, once; what else opens was listed beforehand."""
    left = list(evidence.incidents)
    problems = []
    for planted in PLANTED:
        for rule in planted.rules:
            found = [one for one in left if one.rule == rule and one.opened.step in planted.steps]
            if len(found) != 1:
                problems.append(f"{planted.fault}: {rule} opened {len(found)} times during steps {span(planted.steps)}")
            problems += [
                f"{one.id} names micro-step {one.micro_step}"
                for one in found
                if one.micro_step and planted.micro_step and one.micro_step != planted.micro_step
            ]
            left = [one for one in left if one not in found]
        left = [one for one in left if not follows(one, planted)]
    return problems + [f"{one.rule} opened at step {one.opened.step} and belongs to no fault" for one in left]


def follows(incident: Incident, planted: Planted) -> bool:
    return any(incident.rule == one.rule and incident.opened.step in one.steps for one in planted.follow_ups)


def span(steps: range) -> str:
    return f"{steps.start} to {steps.stop - 1}"


def resolved(evidence: Evidence) -> list[str]:
    return [f"{one.id} still fires at the end" for one in evidence.incidents if one.ending != "resolved"]


def places(evidence: Evidence) -> list[str]:
    """Log and messages name the parameter, layer, expert or head, and the micro-step."""
    problems = []
    for incident in evidence.incidents:
        when = place_text(incident.since.step, incident.micro_step)
        lines = [line for line in evidence.log if f"{incident.rule} firing" in line and when in line]
        told = [one.notice.body for one in evidence.outbox if incident.id in one.notice.incidents]
        for place in (when, *PLACES.get(incident.rule, ())):
            problems += [f"the log of {incident.id} does not name {place}"] * (not any(place in line for line in lines))
            problems += [f"no message of {incident.id} names {place}"] * (not any(place in body for body in told))
    return problems


def notices(evidence: Evidence) -> list[str]:
    """One when a group opens, one per rise in severity or per interval with joins, one when it resolves."""
    times = naive("naive_reading").times(evidence.recording)
    expected = naive("naive_messages").messages(evidence.second_opinion, times)
    wanted = [(one.step, one.reason, one.rules) for one in expected]
    queued = [(one.now.step, one.reason, rules_of(one)) for one in (row.notice for row in evidence.outbox)]
    problems = [f"message not expected: {one}" for one in queued if one not in wanted]
    problems += [f"message not sent: {one}" for one in wanted if one not in queued]
    problems += ["messages out of order"] * (not problems and queued != wanted)
    return problems + [f"not accepted: {row.notice.title}" for row in evidence.outbox if row.accepted is None]


def rules_of(notice: Notice) -> tuple[str, ...]:
    return tuple(sorted(re.split("[@#]", id_)[0] for id_ in notice.incidents))


def delivered(evidence: Evidence) -> list[str]:
    """Both receivers got every message once, in order, with all its words."""
    sent = [row.notice for row in evidence.outbox]
    return over("HTTP", sent, evidence.http) + over("SMTP", sent, evidence.mail)


def over(wire: str, sent: Sequence[Notice], got: Sequence[Received]) -> list[str]:
    if [one.title for one in got] != [one.title for one in sent]:
        return [f"{wire}: {len(got)} messages came, {len(sent)} were sent: {[one.title for one in got]}"]
    return [
        f"{wire}: {notice.title}: the text lacks {sorted(words(notice.body) - words(message.body))}"
        for notice, message in zip(sent, got, strict=True)
        if words(notice.body) - words(message.body)
    ]


def words(text: str) -> set[str]:
    """What remains of Markdown in a plain-text mail."""
    return set(re.findall(r"[\w.+-]+", text.replace("*", " ").replace("`", " ")))


@dataclass(frozen=True, slots=True)
class Window:
    """A capture that is to be: the incident that asks, at which step, and those that join."""

    step: int
    rule: str
    joined: tuple[str, ...]


def windows(evidence: Evidence) -> list[Window]:
    """An incident that opens while a capture is armed or recording joins it; every other one asks for its own."""
    found: list[Window] = []
    for one in sorted(evidence.second_opinion, key=lambda one: one.opened):
        if found and one.opened <= found[-1].step + CAPTURED_STEPS:
            found[-1] = replace(found[-1], joined=(*found[-1].joined, one.rule))
        else:
            found.append(Window(one.opened, one.rule, ()))
    return found


def captures(evidence: Evidence) -> list[str]:
    """Each recorded the next three steps, has a whole trace, and a manifest that says why it was taken."""
    manifests = {path.parent: json.loads(path.read_text("utf-8")) for path in evidence.manifests}
    by_step = {manifest["incident"]["asked"]["step"]: folder for folder, manifest in manifests.items()}
    wanted = windows(evidence)
    problems = [f"a profile was taken at {step}" for step in by_step.keys() - {window.step for window in wanted}]
    for window in wanted:
        folder = by_step.get(window.step)
        if folder is None:
            problems.append(f"no profile of {window.rule} at {window.step}")
        else:
            problems += manifest_problems(manifests[folder], window, evidence.config_digest) + trace_problems(
                folder, manifests[folder]
            )
    return problems


def manifest_problems(manifest: dict[str, Any], window: Window, config_digest: str) -> list[str]:
    first, last = window.step + 1, window.step + CAPTURED_STEPS
    asked_by = manifest["incident"]
    together = sorted([asked_by["rule"], *(one["rule"] for one in manifest["joined"])])
    wrong = {
        "state": manifest["state"] != "finished",
        "incidents": together != sorted([window.rule, *window.joined]),
        "steps": manifest["steps"] != {"first": first, "last": last, "recorded": CAPTURED_STEPS},
        "labels or value": not asked_by["firing"] or asked_by["value"] is None,
        "config hash": manifest["config_digest"] != config_digest,
    }
    return [f"manifest of {asked_by['id']}: {what} is wrong" for what, is_wrong in wrong.items() if is_wrong]


def trace_problems(folder: Path, manifest: dict[str, Any]) -> list[str]:
    """Three steps' worth: as many choices of experts and updates of parameters as three steps make."""
    try:
        events = json.loads((folder / str(manifest["trace"])).read_text("utf-8"))
    except (OSError, ValueError) as error:
        return [f"{folder.name}: no whole trace: {error}"]
    named = (OPERATOR.search(event["name"]) for event in events if event["ph"] == "X")
    ran = Counter(name[1] for name in named if name)
    wanted = {"TopK": ROUTINGS * CAPTURED_STEPS, "Adam": PARAMETERS * CAPTURED_STEPS}
    return [
        f"{folder.name}: {name} ran {ran[name]} times, {times} were to be recorded"
        for name, times in wanted.items()
        if ran[name] != times
    ]


CHECKS: tuple[tuple[str, Callable[[Evidence], list[str]]], ...] = (
    ("every incident opens and ends at the steps that the naive evaluator computes", incidents),
    ("the same label sets fire", alerts),
    ("every fault is found by each of its rules, and nothing else fires but what was listed beforehand", faults),
    ("everything is resolved at the end", resolved),
    ("log and messages name parameter, layer, expert, head and micro-step", places),
    ("every profile holds the next three steps, beside its manifest", captures),
    ("the messages are those expected, and all were accepted", notices),
    ("both receivers got every message", delivered),
)


def run(evidence: Evidence) -> list[tuple[str, list[str]]]:
    """Every check and what it found wrong."""
    return [(what, attempt(check, evidence)) for what, check in CHECKS]


def attempt(check: Callable[[Evidence], list[str]], evidence: Evidence) -> list[str]:
    try:
        return check(evidence)
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]
