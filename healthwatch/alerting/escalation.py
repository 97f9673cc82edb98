"""The ladder: which actions are due now. Pure: (incidents, ladders, what was done and told, now) -> intents.

Notices follow what is active now, not edges: what a receiver was told of a group is compared with what it should know.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from healthwatch.alerting.lifecycle import earlier
from healthwatch.alerting.model import Incident, Intent, LabelSet, Now, Reason, severity_rank
from healthwatch.config import LadderStep
from healthwatch.stream.ticks import Duration

Ladder: TypeAlias = Sequence[LadderStep]
GroupKey: TypeAlias = tuple[str, LabelSet]  # receiver, group

Mode: TypeAlias = Literal["step", "standstill", "end"]

UNTOUCHED_BY_INHIBITION = frozenset({"log"})
LONGEST_WAIT = 60.0  # seconds after which a wait of so many steps is over (R6)


@dataclass(frozen=True, slots=True)
class Told:
    """What one receiver has heard of one open group."""

    members: Mapping[str, Incident]  # by id, those that it was told of
    waiting: Mapping[str, Incident]  # those that stand in the next message
    severity: int
    joined: int  # alerts of the active members when they were last told
    last: Now
    repeat: Duration | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """How far every open incident has climbed, and what every receiver has heard."""

    climbed: Mapping[tuple[str, int], Now] = field(default_factory=dict)  # (incident id, step of the ladder)
    told: Mapping[GroupKey, Told] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Policy:
    """What the config says about telling: ladders by incident, groups, and how often joins are told."""

    ladder: Callable[[Incident], Ladder]
    group: Callable[[Incident], LabelSet]
    group_interval: Callable[[str], Duration]


def escalate(
    incidents: Sequence[Incident], standing: Standing, policy: Policy, now: Now, mode: Mode = "step"
) -> tuple[list[Intent], Standing]:
    """The intents of a step. `incidents` holds every open incident and those that ended at this step.

    Between steps only people are told. At a `standstill` no step has come for `LONGEST_WAIT`: what waits for steps is
    told, and a repeat in steps once. At the `end` of the run what waits is told, and nothing is repeated.
    """
    intents: list[Intent] = []
    if not incidents and not standing.told and not standing.climbed:
        return intents, standing
    climbed = dict(standing.climbed)
    for incident in incidents:
        if not incident.shadow and mode == "step":
            intents += _climb(incident, policy.ladder(incident), climbed, now)
    told = dict(standing.told)
    for key, due in _due(incidents, standing.told, policy, now, mode).items():
        intent, after = _tell(key, due, told.get(key), policy, now, mode)
        intents += [intent] if intent is not None else []
        if after is None:
            told.pop(key, None)
        else:
            told[key] = after
    ended = {incident.id for incident in incidents if not incident.active}
    climbed = {key: value for key, value in climbed.items() if key[0] not in ended}
    return intents, Standing(climbed, told)


def rewind(standing: Standing, to: Now) -> Standing:
    """The standing of a run that goes back: no clock is later than the step before `to`."""
    return Standing(
        {key: earlier(clock, to) or clock for key, clock in standing.climbed.items()},
        {key: replace(told, last=earlier(told.last, to) or told.last) for key, told in standing.told.items()},
    )


def moved(
    standing: Standing, incidents: Iterable[Incident], before: Policy, after: Policy, receivers: Container[str]
) -> Standing:
    """The standing under another policy: what was done and told counts wherever it belongs now.

    What a receiver that is gone was told of is forgotten.
    """
    climbed = {
        (incident.id, number): standing.climbed[incident.id, old]
        for incident in incidents
        for old, known in enumerate(before.ladder(incident))
        for number, step in enumerate(after.ladder(incident))
        if known == step and (incident.id, old) in standing.climbed
    }
    told: dict[GroupKey, Told] = {}
    for (receiver, _), heard in standing.told.items():
        groups = {after.group(each) for each in (*heard.members.values(), *heard.waiting.values())}
        for group in groups if receiver in receivers else ():
            part = _part(heard, group, after)
            known_there = told.get((receiver, group))
            told[receiver, group] = part if known_there is None else _together(known_there, part)
    return Standing(climbed, told)


def _part(told: Told, group: LabelSet, policy: Policy) -> Told:
    members, waiting = (
        {name: incident for name, incident in each.items() if policy.group(incident) == group}
        for each in (told.members, told.waiting)
    )
    return replace(told, members=members, waiting=waiting, joined=_joined(members.values()))


def _together(one: Told, other: Told) -> Told:
    members = {**one.members, **other.members}
    return replace(
        one,
        members=members,
        waiting={**one.waiting, **other.waiting},
        severity=max(one.severity, other.severity),
        joined=_joined(members.values()),
        repeat=one.repeat or other.repeat,
    )


def _climb(incident: Incident, ladder: Ladder, climbed: dict[tuple[str, int], Now], now: Now) -> list[Intent]:
    """Every action but notify, which belongs to groups."""
    intents: list[Intent] = []
    for number, step in enumerate(ladder):
        if step.action == "notify":
            continue
        reason = _reason(incident, step, climbed.get((incident.id, number)), now)
        if reason is not None:
            climbed[incident.id, number] = now
            if not incident.active and step.action == "log" and any(each.action == "log" for each in intents):
                continue  # one line says that it is over, however many have said that it is not
            intents.append(Intent(step.action, step.argument, reason, (incident,), now))
    return intents


def _reason(incident: Incident, step: LadderStep, last: Now | None, now: Now) -> Reason | None:
    if not incident.active:
        return "resolved" if _closing(step, last) else None
    held = incident.held and step.action not in UNTOUCHED_BY_INHIBITION
    if held or step.when_state == "resolved":
        return None
    if last is None:
        return "opened" if step.after.elapsed(*now.since(incident.opened)) else None
    if step.repeat is not None and step.repeat.elapsed(*now.since(last)):
        return "repeat"
    return None


def _closing(step: LadderStep, last: Now | None) -> bool:
    """Whether a ladder's step has something to do at the end: what waits for it, and the log's last line."""
    return step.when_state == "resolved" or (step.action == "log" and last is not None)


def _due(
    incidents: Iterable[Incident], told: Mapping[GroupKey, Told], policy: Policy, now: Now, mode: Mode
) -> dict[GroupKey, dict[str, tuple[Incident, LadderStep]]]:
    """For each receiver and group: the incidents that it is to know of at this step."""
    groups: dict[GroupKey, dict[str, tuple[Incident, LadderStep]]] = {key: {} for key in told}
    for incident in incidents:
        if incident.shadow:
            continue
        for step in policy.ladder(incident):
            if step.action != "notify":
                continue
            key = (str(step.argument), policy.group(incident))
            if _known(incident, told.get(key)) or _tellable(incident, step, now, mode):
                groups.setdefault(key, {}).setdefault(incident.id, (incident, step))
    return groups


def _known(incident: Incident, told: Told | None) -> bool:
    return told is not None and (incident.id in told.members or incident.id in told.waiting)


def _tellable(incident: Incident, step: LadderStep, now: Now, mode: Mode) -> bool:
    if incident.held:
        return False
    if step.when_state == "resolved":
        return not incident.active
    waits_for_steps = step.after.steps is not None
    waited = step.after.elapsed(*now.since(incident.opened)) or (mode != "step" and waits_for_steps)
    return incident.active and waited


def _tell(
    key: GroupKey,
    due: Mapping[str, tuple[Incident, LadderStep]],
    told: Told | None,
    policy: Policy,
    now: Now,
    mode: Mode,
) -> tuple[Intent | None, Told | None]:
    """What this receiver is told of this group now, and what it knows afterwards."""
    heard = told.members if told is not None else {}
    known = {**heard, **told.waiting} if told is not None else {}
    known.update({name: incident for name, (incident, _) in due.items()})
    known = {name: incident for name, incident in known.items() if name in heard or not incident.held}
    members = tuple(known.values())
    if not members:
        return None, None
    if not any(incident.active for incident in members):
        return _intent(key, "resolved", members, now), None
    reason = _news(members, told, policy.group_interval(key[0]), now, mode)
    if reason is None:
        assert told is not None
        heard = {name: incident for name, incident in known.items() if name in told.members}
        waiting = {name: incident for name, incident in known.items() if name not in told.members}
        return None, replace(told, members=heard, waiting=waiting)
    repeats = [step.repeat for _, step in due.values() if step.repeat is not None]
    after = Told(
        members=known,
        waiting={},
        severity=max(severity_rank(incident.severity) for incident in members if not _silenced(incident)),
        joined=_joined(members),
        last=now,
        repeat=min(repeats, key=lambda repeat: (repeat.steps or 0, repeat.seconds or 0.0), default=None),
    )
    return _intent(key, reason, members, now), after


def _news(
    members: Sequence[Incident],
    told: Told | None,
    interval: Duration,
    now: Now,
    mode: Mode,
) -> Reason | None:
    if told is None:
        return "opened"
    active = [incident for incident in members if incident.active]
    joins = [incident for incident in active if incident.id not in told.members]
    if any(severity_rank(incident.severity) > told.severity for incident in joins):
        return "severity"
    elapsed = now.since(told.last)
    if all(incident.held for incident in active):
        return None
    if (joins or _joined(members) >= 2 * told.joined) and _over(interval, elapsed, mode):
        return "joined"
    if told.repeat is not None and _again(told.repeat, elapsed, mode):
        return "repeat"
    return None


def _over(interval: Duration, elapsed: tuple[int, float], mode: Mode) -> bool:
    long_enough = interval.steps is not None and (mode == "standstill" or elapsed[1] >= LONGEST_WAIT)
    return interval.elapsed(*elapsed) or mode == "end" or long_enough


def _again(repeat: Duration, elapsed: tuple[int, float], mode: Mode) -> bool:
    """A training that stands still says so once: steps have passed since the last message, and none will come."""
    if mode == "step" or repeat.steps is None:
        return mode != "end" and repeat.elapsed(*elapsed)
    return mode == "standstill" and elapsed[0] > 0


def _joined(members: Iterable[Incident]) -> int:
    """How many alerts have fired; those of whom somebody has asked not to hear are no news."""
    return sum(incident.joined for incident in members if incident.active and not incident.silenced)


def _silenced(incident: Incident) -> bool:
    return incident.active and incident.silenced


def _intent(key: GroupKey, reason: Reason, members: tuple[Incident, ...], now: Now) -> Intent:
    receiver, group = key
    return Intent("notify", receiver, reason, members, now, group)
