"""What a framework brings along."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from healthwatch.alerting.ports import Profiler
from healthwatch.config import Config
from healthwatch.monitors.pace import Pace
from healthwatch.session.guard import Guard
from healthwatch.stream import LabelSet, SeriesTable

if TYPE_CHECKING:
    from healthwatch.monitors import Monitor


class Integration(Protocol):
    """Its monitors are fed by it, and every hook is its own."""

    loss_scale: Any
    """Of the step under way, where the loop says so."""

    @property
    def profiler(self) -> Profiler: ...

    @property
    def pace(self) -> Pace:
        """How often its monitors measure."""
        ...

    @property
    def printed(self) -> Collection[str]:
        """Monitors whose lines the trainer prints itself: names of `LogRecords.printers`."""
        ...

    @property
    def logit_names(self) -> Mapping[LabelSet, str]:
        """By the labels of a layer: the parameter that holds its maximum attention logits."""
        ...

    def attach(self, model: Any, optimizer: Any | None, config: Config, table: SeriesTable) -> Sequence[Monitor]: ...

    def micro_step(self, loss: Any, grads: Any, accumulated: Any = None) -> None: ...

    def step(self, loss: Any, grads: Any = None) -> None: ...

    def detach(self) -> None: ...


FindIntegration: TypeAlias = Callable[[Any, Guard], Integration]
