"""Logs of MindSpore Transformers' PyNative trainer and of our own monitors, on the console and in files.

Only the message of a line is looked at, wherever it stands: what a logger puts before it is taken for its time alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from healthwatch.readers.format import Format, Options, Passed, reason_of
from healthwatch.readers.steps import Steps
from healthwatch.stream import Frame, LabelSet, SeriesTable
from healthwatch.stream.location import location
from healthwatch.stream.series import label_set

_RECORD = re.compile(
    r"\{ ?(?:step:\[ *(?P<step>\d+)/ *\d+\], (?P<pairs>[^{}]*?) ?\}"
    r'|"(?P<norm>local_norm|device_norm)": (?P<param>[^{}]+?): *(?P<value>[^\s{}]+) ?\}'
    r'|(?P<json>"(?:iter|step|micro_step)": [^{}]*?) ?\})'
)
_NORM = re.compile(r'\{ ?"(local_norm|device_norm)": ([^{}]*): *([^\s{}:]+) ?\}\s*\Z')
_LOGITS = re.compile(r"step:\[ *(\d+)/ *\d+\] max_attention_logit/(\S+): \[([^\[\]]*)\]")
_LOGITS_SUMMARY = re.compile(r"max_attention_logit/(?:mean|max): \S")
_BEGINNING = re.compile(r'\{ ?(?:step:\[|"(?:iter|step|micro_step|local_norm|device_norm)":)|max_attention_logit/')
_PAIR = re.compile(r"(\w+): *(N/A \([^()]*\)|[^,\s]+)")
_NUMBER = re.compile(r"(?P<number>[-+]?(?:\d[\d.]*(?:e[-+]?\d+)?|inf|nan))(?P<unit>[A-Za-z]*)")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)[,.](\d{3})")
_ACCUMULATION = re.compile(r"num_accumulation_steps=(\d+)")
_TOP_K = re.compile(r"[\"']num_experts_per_tok[\"']: (\d+)")
_MTP = re.compile(r"mtp_(\d+)_loss")

_OWN = frozenset(("micro_step", "local_loss", "device_loss", "tpe"))
"""Keys by which an object with a step is one of these: many a trainer writes a line of JSON a step."""

CUT = "it is cut off, or another writer's line runs through it"
_TRACEBACK = "Traceback (most recent call last)"
_START = "Start training loop"
_UNITS: Mapping[str, float] = {"": 1.0, "ms": 1e-3, "T": 1e12}
_STEP_METRICS: Mapping[str, str] = {
    "loss": "loss",
    "per_step_time": "step_time",
    "lr": "lr",
    "grad_norm": "grad_norm",
    "loss_scale": "loss_scale",
    "throughput": "throughput",
    "consumed_samples": "consumed_samples",
    "global_batch_size": "global_batch_size",
    "load_balancing_loss": "load_balancing_loss",
    "indexer_loss": "indexer_loss",
}


def recognises(head: str) -> bool:
    """By a record of its own, or by the trainer's name in a line of a log in which no step has ended yet."""
    objects = (found["json"] for found in _RECORD.finditer(head))
    ours = any(text is None or _is_own(text) for text in objects)
    return ours or bool(_LOGITS.search(head)) or "[mindformers/" in head


def _is_own(text: str) -> bool:
    """Whether what stands between the braces of an object is ours; records have a micro-step as well."""
    return '"metric":' not in text and any(f'"{key}":' in text for key in _OWN)


class MindFormersLog:
    """A reader of one log. `top_k` stands in where the log does not name `num_experts_per_tok`."""

    def __init__(self, table: SeriesTable, options: Options) -> None:
        self.passed = Passed()
        self._steps = Steps(table)
        self._top_k = options.top_k
        self._top_k_given = options.top_k is not None
        self._line = 0
        self._step = 0  # of the last record that named one
        self._traceback = False  # since the last record
        self._begun = 0  # the last attempt of which a step has been read
        self._micro_step: int | None = None  # of the last header, for the norms behind it
        self._places: dict[tuple[Any, ...], LabelSet] = {}

    def feed(self, line: str) -> Sequence[Frame]:
        """The next line; most lines of a log are none of ours and leave after two substring searches."""
        self._line += 1
        if "step" in line:
            self._steps_line(line)
        elif '_norm": ' in line:
            self._norm_line(line)
        elif not self._top_k_given and "num_experts_per_tok" in line:
            found = _TOP_K.search(line)
            self._top_k = int(found[1]) if found else self._top_k
        elif _START in line:
            self._restart()
        elif _TRACEBACK in line:
            self._traceback = True
        return self._steps.take() if self._steps.ready else ()

    def finish(self) -> Sequence[Frame]:
        self._end()
        self.passed.late = self._steps.late
        return self._steps.finish()

    # One line

    def _steps_line(self, line: str) -> None:
        if "max_attention_logit/" in line:
            self._logits(line)
        elif "{" in line:
            self._braced(line)
        elif "num_accumulation_steps=" in line:
            found = _ACCUMULATION.search(line)
            if found:
                self._steps.expect(int(found[1]))

    def _norm_line(self, line: str) -> None:
        """Most lines of a log that holds norms are these: one that ends as it should is read without a search."""
        found = _NORM.match(line, line.find("{"))
        if found is None or not self._step:
            self._braced(line)
            return
        try:
            self._norm(found[1], found[2], float(found[3]))
        except ValueError as error:
            self.passed.unread(self._line, reason_of(error))

    def _end(self) -> None:
        """Of an attempt: an error was its end if no step came after a traceback."""
        if self._traceback:
            self._steps.fail()
        self._traceback = False

    def _restart(self) -> None:
        self._end()
        self._steps.restart()
        self._step, self._micro_step = 0, None

    def _braced(self, line: str) -> None:
        end = 0
        for found in _RECORD.finditer(line):
            end = found.end()
            kind = found.lastgroup
            try:
                if kind == "pairs":
                    self._step_line(int(found["step"]), found["pairs"], line)
                elif kind == "value":
                    self._norm(found["norm"], found["param"], float(found["value"]))
                else:
                    self._json(json.loads("{" + found["json"] + "}"), line)
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                self.passed.unread(self._line, reason_of(error))
        if _BEGINNING.search(line, end):
            self.passed.unread(self._line, CUT)

    def _step_line(self, step: int, pairs: str, line: str) -> None:
        if not self._enter(step, line):
            return
        self._micro_step = None
        for name, text in _PAIR.findall(pairs):
            if text in ("None", "NaN") or text.startswith("N/A"):
                continue  # said of what this pipeline stage does not have; a value that is not a number is "nan"
            mtp = _MTP.fullmatch(name)
            if mtp:
                self._steps.add("mtp_loss", (_quantity(text),), (("mtp_idx", str(int(mtp[1]) - 1)),))
            elif name in _STEP_METRICS:
                self._steps.add(_STEP_METRICS[name], (_quantity(text),))

    def _norm(self, metric: str, param: str, value: float) -> None:
        micro_step = self._micro_step if metric == "local_norm" else None
        if self._steps.enter(self._known(self._step)):
            self._steps.add(metric, (value,), (("param", param),), micro_step)

    def _json(self, record: dict[str, Any], line: str) -> None:
        if record.keys() != {"step"} and not record.keys() & _OWN:  # alone it is the header of the norms behind it
            raise ValueError("another writer's line")
        step = self._known(int(record.get("step", self._step)))
        if not self._enter(step, line):
            return
        micro_step = int(record["micro_step"]) - 1 if "micro_step" in record else None
        if "tpe" in record:
            self._tokens(record, micro_step)
            return
        self._micro_step = micro_step
        if "local_loss" in record:
            self._steps.add("local_loss", (float(record["local_loss"]),), micro_step=micro_step)
        if "device_loss" in record:
            self._steps.add("device_loss", (float(record["device_loss"]),))

    def _tokens(self, record: dict[str, Any], micro_step: int | None) -> None:
        place = {"block": record["block"], "layer": record["layer"]}
        if record["block"] == "mtp":
            place["mtp_idx"] = record["mtp_idx"]
        labels = self._cached(tuple(place.items()), lambda: place)
        counts = record["tpe"]
        flat = counts[0] if counts and isinstance(counts[0], list) else counts
        self._steps.add("tokens_per_expert", [float(count) for count in flat], labels, micro_step, over="expert")
        if self._top_k is not None:
            self._steps.add("router_topk", (float(self._top_k),), labels)

    def _logits(self, line: str) -> None:
        found = _LOGITS.search(line)
        if found is None:
            if not _LOGITS_SUMMARY.search(line):
                self.passed.unread(self._line, CUT)
            return
        step, path, heads = found.groups()
        try:
            values = [float(head) for head in heads.split(",")]
        except ValueError as error:
            self.passed.unread(self._line, reason_of(error))
            return
        if self._enter(int(step), line):
            labels = self._cached((path,), lambda: location(path) or {"layer": path})
            self._steps.add("max_attention_logit", values, labels, over="head")

    def _cached(self, key: tuple[Any, ...], place: Callable[[], Mapping[str, Any]]) -> LabelSet:
        if key not in self._places:
            self._places[key] = label_set(place())
        return self._places[key]

    def _known(self, step: int) -> int:
        if step <= 0:
            raise ValueError("a record that names no step, before any that does")
        return step

    def _enter(self, step: int, line: str) -> bool:
        self._step = step
        if not self._steps.enter(step, _time(line)):
            return False
        self._traceback = False  # of an error that somebody caught
        if self._steps.attempt != self._begun:
            self._begun = self._steps.attempt
            self._steps.add("run_failed", (0.0,))
        return True


def _quantity(text: str) -> float:
    """A number with its unit, in the unit of the metric catalogue."""
    found = _NUMBER.fullmatch(text)
    if found is None or found["unit"] not in _UNITS:
        raise ValueError(f"not a number: {text!r}")
    return float(found["number"]) * _UNITS[found["unit"]]


def _time(line: str) -> float:
    """Seconds since 1970 of a time in the line's first half, taken to be local; 0 where there is none."""
    found = _TIME.search(line, 0, 80)
    if found is None:
        return 0.0
    try:
        return datetime.fromisoformat(f"{found[1]}T{found[2]}.{found[3]}").timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


FORMAT = Format(
    "mindformers",
    "console and file logs of MindSpore Transformers (2.0.0, 2.1.0 and later), and of our own monitors",
    recognises,
    MindFormersLog,
)
