"""What the config file says, defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from healthwatch.diagnostics import Span
from healthwatch.stream.ticks import Duration

NameFilter: TypeAlias = bool | tuple[str, ...]  # True: every trainable parameter; names: substrings; False: off


@dataclass(frozen=True, slots=True)
class LadderStep:
    """One action of an escalation ladder, `after` a time of firing, repeated if asked for."""

    action: str
    argument: Any
    after: Duration = Duration(steps=0)
    repeat: Duration | None = None
    when_state: Literal["firing", "resolved"] = "firing"
    span: Span | None = field(default=None, compare=False)  # of the argument


class Secret:
    """A credential: masked wherever it is shown, revealed only where it is sent.

    `span` and `source` are where it stands in the config, and that line, masked.
    """

    __slots__ = ("_value", "source", "span")

    def __init__(self, value: str, span: Span | None = None, source: str = "") -> None:
        self._value, self.span, self.source = value, span, source

    def reveal(self) -> str:
        return self._value

    def at(self, span: Span, source: str) -> Secret:
        """The same one, with its place."""
        return Secret(self._value, span, source)

    def __repr__(self) -> str:
        return "Secret(****)"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


@dataclass(frozen=True, slots=True)
class Receiver:
    """Where messages go: apprise URLs, an Alertmanager, and how often joins of a group are told."""

    name: str
    urls: tuple[Secret, ...]
    group_interval: Duration = Duration(steps=50)
    alertmanager: Secret | None = None

    @property
    def addresses(self) -> tuple[Secret, ...]:
        """In the order in which their acceptances are counted: the URLs as written, then the Alertmanager."""
        return self.urls if self.alertmanager is None else (*self.urls, self.alertmanager)


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """Limits of the captures that incidents ask for. Sizes are bytes; `reference_at` is a step."""

    max_captures: int = 3
    cooldown: int = 500
    min_free_disk: int = 5 * 2**30
    max_total_size: int = 20 * 2**30
    ranks: tuple[int | str, ...] = ("culprit",)
    reference_at: int | None = None


@dataclass(frozen=True, slots=True)
class TrainState:
    local_norm: NameFilter = False
    local_loss: bool = False
    device_norm: NameFilter = False
    device_loss: bool = False


@dataclass(frozen=True, slots=True)
class MoEMonitor:
    save_tokens_per_expert_interval: int | None = None
    target_layers: int | tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class ProfilerSection:
    """The reference's `profiler` section; captures use it as their defaults."""

    enable_profiling: bool = False
    start_step: int = 1
    end_step: int = 1
    output_path: str | None = None
    profiler_rank: tuple[int, ...] | None = None
    profiler_level: int = 0
    mstx: bool = False
    profile_memory: bool = False
    profile_cpu: bool = True
    with_stack: bool = True


@dataclass(frozen=True, slots=True)
class Config:
    """Everything in force for one run, defaults filled in. `digest` is the SHA-256 of the file's bytes."""

    run: str
    output: Path
    rules: tuple[str, ...]
    digest: str
    override: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    escalation: Mapping[str, tuple[LadderStep, ...]] = field(default_factory=dict)
    receivers: Mapping[str, Receiver] = field(default_factory=dict)
    capture: CaptureSettings = CaptureSettings()
    group_by: tuple[str, ...] = ("run",)
    no_data_after: int = 200
    late_after: float = 30.0
    budget: float = 0.02
    record_max_size: int | None = None
    train_state: TrainState = TrainState()
    moe_monitor: MoEMonitor = MoEMonitor()
    max_logits_interval: int | None = None
    total_steps: int | None = None  # training.steps, shown behind the step where logits are printed
    profiler: ProfilerSection = ProfilerSection()
    top_k: int | None = None
    experts: int | None = None  # routed ones of a layer
    qk_clip_threshold: float | None = None  # Muon clips q and k there, so the model tracks its maximum attention logits
    file: Path | None = None  # where it was read, None where it lies in no file
    disabled: bool = False
    dry_run: bool = False

    @property
    def qk_clip(self) -> bool:
        return self.qk_clip_threshold is not None
