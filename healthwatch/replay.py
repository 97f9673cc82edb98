"""What a recorded run says when its samples go through the engine once more."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from healthwatch.diagnostics import Diagnostic, Invalid, errors
from healthwatch.engine import Engine, Outcome
from healthwatch.recording import Run, write_rules
from healthwatch.rulefile import Rule, load_rules

Overrides = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Replay:
    """A run and the rules that judge it."""

    run: Run
    rules: tuple[Rule, ...]
    no_data_after: int = 200

    def outcomes(self) -> Iterator[Outcome]:
        """One outcome a frame, in the order of the recording; a step that comes again goes back first (R12)."""
        engine = Engine(self.rules, self.run.table, no_data_after=self.no_data_after)
        last = 0
        for frame in self.run.frames():
            rewound = engine.rewind(frame.step) if frame.step <= last else ()
            last = frame.step
            outcome = engine.step(frame)
            yield replace(outcome, transitions=(*rewound, *outcome.transitions))


def load_replay(
    path: Path | str, sources: Sequence[str] = (), params: Mapping[str, Mapping[str, float]] | None = None
) -> Replay:
    """A replay of a run file, or of the run of the lowest rank in a folder.

    Args:
        path: `rank_<r>.sqlite` or the folder that holds it.
        sources: rule files or `builtin:<pack>`; without any, the rules that the run's last attempt was watched with.
        params: values of `params` by rule, on top of the run's own `override`.

    Raises:
        Invalid: there is no such run, or the rules can't be used; it carries all problems.
    """
    run = Run.open(path)
    meta = run.meta
    overrides = _with_params(meta.get("override", {}), params or {})
    with tempfile.TemporaryDirectory(prefix="healthwatch-") as folder:
        recorded = [] if sources else write_rules(meta, Path(folder))
        if not sources and not recorded:
            message = f"{run.path.as_posix()} holds no rules; name some with --rules"
            raise Invalid([Diagnostic("HW303", "error", message)])
        loaded = load_rules([*sources, *recorded], overrides)
    if errors(loaded.diagnostics):
        raise Invalid(loaded.diagnostics)
    return Replay(run, loaded.rules, meta.get("no_data_after", 200))


def _with_params(overrides: Overrides, params: Mapping[str, Mapping[str, float]]) -> Overrides:
    merged = {name: dict(override) for name, override in overrides.items()}
    for name, values in params.items():
        override = merged.setdefault(name, {})
        override["params"] = {**override.get("params", {}), **values}
    return merged
