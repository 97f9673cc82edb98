"""The lines that the trainer's own monitors print, written from a closed frame: for loops without that trainer.

Printing is apart from measuring: a frame holds every series at every step, and a switch decides what of it is printed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Protocol, TypeAlias

import numpy as np

from healthwatch.config import Config, MoEMonitor, NameFilter, TrainState
from healthwatch.stream import Column, Frame, LabelSet

Names: TypeAlias = Mapping[LabelSet, str]  # of a layer's labels: the parameter that holds its maximum logits


class Printer(Protocol):
    """One monitor's part of a log."""

    def lines(self, frame: Frame) -> Iterator[str]: ...


@dataclass(frozen=True, slots=True)
class TrainStateLines:
    """`train_state`: losses as JSON, norms under a header that names the step and the micro-step, counted from 1."""

    switches: TrainState

    def lines(self, frame: Frame) -> Iterator[str]:
        if self.switches.local_loss:
            for column in _columns(frame, "local_loss"):
                yield _loss("local_loss", column, {"step": frame.step, "micro_step": _place(column)})
        if self.switches.device_loss:
            for column in _columns(frame, "device_loss"):
                yield _loss("device_loss", column, {"step": frame.step})
        for column in _columns(frame, "local_norm"):
            header = f'{{ "step": {frame.step}, "micro_step": {_place(column)} }}'
            yield from _norms(header, column, self.switches.local_norm)
        for column in _columns(frame, "device_norm"):
            yield from _norms(f'{{ "step": {frame.step} }}', column, self.switches.device_norm)


@dataclass(slots=True)
class MoELines:
    """`moe_monitor`: one JSON record a layer, every `save_tokens_per_expert_interval` micro-steps of the run.

    `missing` are layers that were asked for and have no experts: known with the first tokens, or after two
    steps without any.
    """

    settings: MoEMonitor
    missing: tuple[int, ...] = ()
    _step: int = 0
    _before: int = 0  # micro-steps of the run before the step
    _frames: int = 0
    _checked: bool = False

    def lines(self, frame: Frame) -> Iterator[str]:
        micro_steps = frame.micro_steps or 1
        self._before = self._before if frame.step == self._step + 1 else (frame.step - 1) * micro_steps
        self._step = frame.step
        columns = list(_columns(frame, "tokens_per_expert"))
        self._check(columns)
        due = [each for each in columns if self._due(each)]
        found = [(layer, each, places) for each in due for layer, places in _by_layer(each, self._wanted)]
        for (block, mtp, layer), column, places in sorted(found, key=lambda one: (one[0], one[1].tick)):
            micro_step = _place(column)
            record: dict[str, Any] = {"iter": self._before + micro_step, "step": frame.step, "micro_step": micro_step}
            record |= {"block": block} | ({"mtp_idx": mtp} if block == "mtp" else {}) | {"layer": layer}
            yield json.dumps(record | {"tpe": [_whole(column.values[places])]})
        self._before += micro_steps

    def _due(self, column: Column) -> bool:
        interval = self.settings.save_tokens_per_expert_interval
        return interval is not None and (self._before + _place(column)) % interval == 0

    def _wanted(self, block: str, layer: int) -> bool:
        targets = target_layers(self.settings)
        return targets is None or (block == "decoder" and layer in targets)

    def _check(self, columns: Sequence[Column]) -> None:
        targets = target_layers(self.settings)
        self._frames += 1
        if targets is None or self._checked or (not columns and self._frames < 2):
            return
        self._checked = True
        labels = (dict(pairs) for column in columns for pairs in column.series.labels)
        found = {(each.get("block"), each.get("layer")) for each in labels}
        self.missing = tuple(layer for layer in sorted(targets) if ("decoder", str(layer)) not in found)


@dataclass(frozen=True, slots=True)
class MaxLogitsLines:
    """`MaxLogitsMonitor`: a line a layer, then the mean and the maximum of all, with four significant digits."""

    interval: int
    names: Names
    total_steps: int | None

    def lines(self, frame: Frame) -> Iterator[str]:
        if frame.step % self.interval:
            return
        for column in _columns(frame, "max_attention_logit"):
            prefix = f"step:[{frame.step:5d}/{max(frame.step, self.total_steps or 0):5d}] max_attention_logit"
            place = 0
            for layer, heads in groupby(column.series.labels, _layer_of):
                values = column.values[place : place + len(list(heads))]
                place += len(values)
                yield f"{prefix}/{self.names.get(layer, _made_up(layer))}: [{', '.join(map(_four, values))}]"
            yield f"{prefix}/mean: {_four(column.values.mean())}"
            yield f"{prefix}/max: {_four(column.values.max())}"


@dataclass(slots=True)
class LogRecords:
    """The lines of every monitor that is switched on; `printers` holds no others."""

    printers: Mapping[str, Printer] = field(default_factory=dict)
    _told: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, config: Config, names: Names | None = None) -> LogRecords:
        printers: dict[str, Printer] = {}
        if config.train_state != TrainState():
            printers["train_state"] = TrainStateLines(config.train_state)
        if config.moe_monitor.save_tokens_per_expert_interval is not None:
            printers["moe_monitor"] = MoELines(config.moe_monitor)
        if config.max_logits_interval is not None:
            printers["max_logits"] = MaxLogitsLines(config.max_logits_interval, names or {}, config.total_steps)
        return cls(printers)

    def lines(self, frame: Frame, elsewhere: Collection[str] = ()) -> Iterator[str]:
        """What is to be printed of a step; nothing of the printers that print `elsewhere`."""
        for name, printer in self.printers.items():
            if name not in elsewhere:
                yield from printer.lines(frame)

    def remarks(self) -> Iterator[str]:
        """Told once each, as warnings."""
        moe = self.printers.get("moe_monitor")
        for layer in moe.missing if isinstance(moe, MoELines) else ():
            if layer not in self._told:
                self._told.add(layer)
                yield f"decoder.layers.{layer} is not a MoE layer, no tokens_per_expert."


def target_layers(settings: MoEMonitor) -> frozenset[int] | None:
    """N is the first N decoder layers, a list those layers, None every MoE layer."""
    targets = settings.target_layers
    if targets is None:
        return None
    return frozenset(range(targets) if isinstance(targets, int) else targets)


def selected(name: str, names: NameFilter) -> bool:
    """Whether a filter prints the parameter `name`: a text is any part of it."""
    return names if isinstance(names, bool) else any(part in name for part in names)


def _columns(frame: Frame, metric: str) -> Iterator[Column]:
    return (column for column in frame.columns if column.series.metric == metric)


def _place(column: Column) -> int:
    return (column.micro_step or 0) + 1


def _loss(name: str, column: Column, record: Mapping[str, Any]) -> str:
    return json.dumps({**record, name: float(column.values[0])})


def _norms(header: str, column: Column, names: NameFilter) -> Iterator[str]:
    printed = [
        f'{{ "{column.series.metric}": {name}: {value:10.6f} }}'
        for ((_, name), *_), value in zip(column.series.labels, column.values.tolist(), strict=True)
        if selected(name, names)
    ]
    if printed:
        yield header
        yield from printed


def _by_layer(column: Column, wanted: Any) -> Iterator[tuple[tuple[str, int, int], list[int]]]:
    """Block, mtp_idx and layer, with the places of its experts in their order."""
    places: dict[tuple[str, int, int], list[tuple[int, int]]] = {}
    for place, pairs in enumerate(column.series.labels):
        labels = dict(pairs)
        layer = (labels.get("block", "decoder"), _number(labels.get("mtp_idx")), _number(labels.get("layer")))
        if wanted(layer[0], layer[2]):
            places.setdefault(layer, []).append((_number(labels.get("expert")), place))
    for layer, found in places.items():
        yield layer, [place for _, place in sorted(found)]


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else 0


def _whole(counts: Any) -> list[int]:
    return [int(count) for count in np.rint(np.nan_to_num(counts)).tolist()]


def _layer_of(labels: LabelSet) -> LabelSet:
    return tuple(pair for pair in labels if pair[0] != "head")


def _made_up(layer: LabelSet) -> str:
    """A name from which the layer can be read back, where the parameter's own is not known."""
    labels = dict(layer)
    if labels.get("block") == "mtp":
        return f"mtp.layers.{labels.get('mtp_idx', 0)}.mtp_model_layer.layers.{labels.get('layer', 0)}.max_logits_val"
    return f"decoder.layers.{labels.get('layer', 0)}.max_logits_val"


def _four(value: float) -> str:
    return f"{float(value):.4g}"
