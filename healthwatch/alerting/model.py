"""The nouns of alerting: verdict, alert, transition, incident, intent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, NamedTuple, TypeAlias

LabelSet: TypeAlias = tuple[tuple[str, str], ...]

SEVERITIES = ("info", "warning", "critical")


class Verdict(Enum):
    """What a rule says of a series at a step."""

    BREACH = "breach"
    CLEAR = "clear"
    NO_DATA = "no data"


class Phase(Enum):
    INACTIVE = "inactive"
    PENDING = "pending"
    FIRING = "firing"


# For what runs many times a step: up to Python 3.11 looking up a member of a class costs ten times as much as a name.
IS_INACTIVE, IS_PENDING, IS_FIRING = Phase
SAYS_BREACH, SAYS_CLEAR, SAYS_NO_DATA = Verdict


Change: TypeAlias = Literal["breach", "fired", "clear", "resolved", "expired", "rewound"]

Ending: TypeAlias = Literal["resolved", "expired"]


@dataclass(frozen=True, slots=True)
class Now:
    """The step being closed; `time` is unix seconds as recorded in its frame.

    `clock` is the run's own time in seconds; it stands still between attempts, and wall-clock durations are
    measured on it.
    """

    step: int
    time: float
    attempt: int = 1
    clock: float = 0.0

    def since(self, then: Now) -> tuple[int, float]:
        """Steps and seconds that have passed since `then`."""
        return self.step - then.step, self.clock - then.clock


class Observation(NamedTuple):
    """A rule's verdict on one label set at a step; micro-step (from 1) and value are those of its first breach."""

    verdict: Verdict
    value: float = float("nan")
    micro_step: int | None = None


class Alert(NamedTuple):
    """One rule on one label set. There is a new one for each at every step, and no object is made more quickly."""

    phase: Phase = Phase.INACTIVE
    since: Now | None = None  # the first breach of this pending or firing spell
    micro_step: int | None = None  # of that first breach, counted from 1
    breaches: int = 0  # without a clear between
    fired: Now | None = None
    cleared: Now | None = None  # the first clear since the last breach, while `keep_firing_for` holds the alert
    last_verdict: Now | None = None  # the last breach or clear
    value: float = float("nan")  # at the last breach


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of phase: the alert before and after, and why."""

    rule: str
    labels: LabelSet
    before: Phase
    after: Phase
    reason: Change
    now: Now
    micro_step: int | None
    value: float


@dataclass(slots=True)
class Transitions:
    """Alerts of one rule that change their phase alike at one moment; there is at least one.

    A step may bring 10,000 of them. Iterating gives each as a `Transition`.
    """

    rule: str
    before: Phase
    after: Phase
    reason: Change
    now: Now
    labels: list[LabelSet]  # one an alert, as the two below
    micro_steps: list[int | None]
    values: list[float]

    def add(self, labels: LabelSet, micro_step: int | None, value: float) -> None:
        """One more alert."""
        self.labels.append(labels)
        self.micro_steps.append(micro_step)
        self.values.append(value)

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Transition]:
        for labels, micro_step, value in zip(self.labels, self.micro_steps, self.values, strict=True):
            yield Transition(self.rule, labels, self.before, self.after, self.reason, self.now, micro_step, value)


@dataclass(frozen=True, slots=True)
class Sample:
    """One series and its value, as a message lists it.

    Where the rule's own series is behind it, a message also says what was measured (`now`) and the median of the
    finite samples before (`baseline`).
    """

    labels: LabelSet
    value: float
    now: float | None = None
    baseline: float | None = None

    @property
    def ratio(self) -> float | None:
        """What was measured by its baseline; None where one is missing or the baseline is not above 0."""
        if self.now is None or self.baseline is None or not self.baseline > 0:
            return None
        return self.now / self.baseline


@dataclass(frozen=True, slots=True)
class Trace:
    """What a series did up to now, for a picture: `steps` are points on the step axis (micro-steps between them)."""

    labels: LabelSet
    steps: tuple[float, ...]
    values: tuple[float, ...]
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Incident:
    """The alerts of one rule that fire together, from the first one's firing to the last one's end."""

    id: str  # "<rule>@<step>" of its opening, "#<attempt>" from the second attempt on, ".<turn>" where that went back
    rule: str
    severity: str
    opened: Now  # the step at which the first alert fired
    since: Now  # that alert's first breach
    micro_step: int | None
    firing: tuple[Sample, ...]  # the worst ones, worst first; those that fired last once it has ended
    count: int  # how many alerts fire; the last count once it has ended
    joined: int  # how many alerts have fired in it so far
    ended: Now | None = None
    ending: Ending | None = None
    inhibited: bool = False
    silenced: bool = False
    shadow: bool = False
    first: LabelSet | None = None  # the series that began it, in causal order
    last_verdict: Now | None = None  # the last step at which one of its alerts had a breach or a clear
    details: tuple[Sample, ...] = ()  # the rule's `detail` where it has one, when a message is written
    traces: tuple[Trace, ...] = ()  # of the worst series, when a message is written

    @property
    def active(self) -> bool:
        return self.ended is None

    @property
    def held(self) -> bool:
        """Whether nobody is to be told for now."""
        return self.inhibited or self.silenced

    @property
    def quiet(self) -> bool:
        """Whether it fires and is held: of an end is told, whatever holds the incident."""
        return self.active and self.held


Reason: TypeAlias = Literal["opened", "joined", "severity", "repeat", "resolved"]


@dataclass(frozen=True, slots=True)
class Intent:
    """One action due now. A notify intent carries every incident of its group that the receiver is to hear of."""

    action: str  # the name under which it is registered: log, profile, notify, stop, command
    argument: Any  # what stands behind the name in the ladder: "error", {"steps": 3}, "oncall"
    reason: Reason
    incidents: tuple[Incident, ...]
    now: Now
    group: LabelSet = ()
    look: int = 0  # between two steps: which look since the last one

    @property
    def loud(self) -> tuple[Incident, ...]:
        """What it is about: those that are not held back, or all of them where all are."""
        return tuple(incident for incident in self.incidents if not incident.quiet) or self.incidents

    @property
    def severity(self) -> str:
        return max((incident.severity for incident in self.loud), key=severity_rank, default="info")


@dataclass(frozen=True, slots=True)
class Notice:
    """A rendered message on its way to one receiver: a row of the outbox."""

    id: str  # unique in the run: the same notice is told once
    receiver: str
    reason: Reason
    severity: str
    title: str
    body: str  # Markdown
    incidents: tuple[str, ...]
    now: Now
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """One URL of a receiver (`target`, counted from 1) has taken a notice; `whole` once all of them have."""

    notice: str
    target: int
    time: float  # unix seconds
    whole: bool


@dataclass(frozen=True, slots=True)
class Untold:
    """A notice that not every URL of its receiver has taken; `done` are those that have."""

    notice: Notice
    done: frozenset[int] = frozenset()


def severity_rank(severity: str) -> int:
    """Higher is worse; a severity that is none of ours ranks as info."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else 0
