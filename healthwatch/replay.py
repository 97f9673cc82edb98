"""What a recorded run or a log says when its samples go through the engine once more."""

from __future__ import annotations

import tempfile
from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from healthwatch import resources
from healthwatch.alerting.policy import SILENT
from healthwatch.diagnostics import Diagnostic, Invalid, errors, suggest
from healthwatch.engine import FORESEEN, Engine, Outcome
from healthwatch.readers import Options, open_log
from healthwatch.recording import Reload, Run, recall, revive, rows_of, write_rules
from healthwatch.rulefile import Rule, load_rules
from healthwatch.rulefile.load import BUILTIN
from healthwatch.rulefile.model import Loaded
from healthwatch.rulefile.shipped import meant
from healthwatch.stream import Frame, SeriesTable

Overrides = Mapping[str, Mapping[str, Any]]
Params = Mapping[str, Mapping[str, float]]
Meta = Mapping[str, Any]
Said = tuple[int, Reload | None, Meta]  # the attempt, what changed within it (None: its start), and with which rules

DECIDING = ("rules", "override", "no_data_after")  # of the meta of an attempt: what decides what is said

SQLITE = b"SQLite format 3\0"

MOST_HELD = 1 << 22
"""Values of frames that are judged together, which take some ten bytes each."""


class Source(Protocol):
    """What frames come from; their series are those of its table."""

    @property
    def path(self) -> Path: ...

    @property
    def table(self) -> SeriesTable: ...

    def frames(self) -> Iterator[Frame]: ...


@dataclass(frozen=True, slots=True)
class Version:
    """Rules, and the frame from which on they judge, by how many come before it; clocks may be set back."""

    rules: tuple[Rule, ...]
    no_data_after: int = 200
    frame: int = 0
    begins_an_attempt: bool = True


@dataclass(frozen=True, slots=True)
class Replay:
    """Frames and the rules that judge them; the first version judges from the first frame on."""

    source: Source
    versions: tuple[Version, ...]
    clock_events: Mapping[tuple[int, int, float], Sequence[float]] = field(default_factory=dict)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """In force at the end."""
        return self.versions[-1].rules

    def outcomes(self) -> Iterator[Outcome]:
        """One outcome a frame, clock event and reload, in order; a step that comes again goes back first (R12)."""
        engine = self._engine(self.versions[0])
        due = deque(self.versions[1:])
        last = 0
        for number, frames in self._stretches():
            first = frames[0]
            while due and due[0].frame <= number:
                version = due.popleft()
                if version.begins_an_attempt or not number:  # before the first step nothing stands
                    engine = self._restarted(engine, version, number)
                else:
                    yield engine.replace(version.rules, SILENT, version.no_data_after, (), first.time)
            rewound = engine.rewind(first.step) if first.step <= last else ()
            if first.step <= last:
                recall(engine, islice(self.source.frames(), number), first.step)
            last = frames[-1].step
            for outcome in engine.steps(frames):
                incidents = tuple(map(engine.brought_up, outcome.incidents))
                yield replace(outcome, changes=(*rewound, *outcome.changes), incidents=incidents)
                rewound = ()
            for time in self._ticks_after(frames[-1]):
                ticked = engine.tick(time)
                if ticked is not None:
                    yield ticked

    def _stretches(self) -> Iterator[tuple[int, list[Frame]]]:
        """Frames between which nothing else happens, and how many come before them."""
        begins = {version.frame for version in self.versions}
        stretch: list[Frame] = []
        number, held = -1, 0
        for number, frame in enumerate(self.source.frames()):
            if stretch and (
                number in begins
                or len(stretch) == FORESEEN
                or held > MOST_HELD
                or frame.step <= stretch[-1].step
                or self._ticks_after(stretch[-1])
            ):
                yield number - len(stretch), stretch
                stretch, held = [], 0
            stretch.append(frame)
            held += sum(len(column.values) for column in frame.columns)
        if stretch:
            yield number + 1 - len(stretch), stretch

    def _ticks_after(self, frame: Frame) -> Sequence[float]:
        """When rules that look at the wall clock were asked before the next frame."""
        return self.clock_events.get((frame.attempt, frame.step, frame.time), ())

    def _engine(self, version: Version) -> Engine:
        return Engine(version.rules, self.source.table, no_data_after=version.no_data_after)

    def _restarted(self, before: Engine, version: Version, number: int) -> Engine:
        """As an attempt goes on: where alerting stood, with other rules, and the windows filled with what there was."""
        engine = self._engine(version)
        revive(engine, rows_of(before))
        recall(engine, islice(self.source.frames(), number))
        return engine


def load_replay(
    path: Path | str,
    sources: Sequence[str] = (),
    params: Params | None = None,
    *,
    log_format: str | None = None,
    options: Options = Options(),
) -> Replay:
    """A replay of a run file, of the run of the lowest rank in a folder, or of a log.

    Args:
        path: `rank_<r>.sqlite`, the folder that holds it, or a log in any format that can be read.
        sources: rule files or `builtin:<pack>`; without any, those that were in force at each step of the run, or all
            shipped packs for a log.
        params: values of `params` by rule, on top of the run's own `override`.
        log_format: the format of a log, where it is not to be recognised.
        options: what a log does not say itself.

    Raises:
        Invalid: there is no such run or log, or the rules can't be used; it carries all problems.
        OSError: a log can't be read.
    """
    params = params or {}
    if log_format is not None or _is_log(Path(path)):
        log = open_log(path, log_format, options)
        return Replay(log, (Version(_usable(sources or _packs(), {}, params)),))
    run = Run.open(path)
    if not sources:
        return Replay(run, _in_force(run, params), run.clock_events())
    rules = _usable(sources, run.meta.get("override", {}), params)
    return Replay(run, (Version(rules, run.meta.get("no_data_after", 200)),), run.clock_events())


def _in_force(run: Run, params: Params) -> tuple[Version, ...]:
    """What the run was watched with, each time it changed: at the start of an attempt, or by a reload within one."""
    said: list[Said] = [(each.number, None, each.meta) for each in run.attempts()]
    said += [(each.attempt, each, each.meta) for each in run.reloads()]
    if not any(meta.get("rules") for *_, meta in said):
        message = f"{run.path.as_posix()} holds no rules; name some with --rules"
        raise Invalid([Diagnostic("HW303", "error", message)])
    said.sort(key=lambda each: (each[0], each[1] is not None))
    changes = [each for each, before in zip(said, [None, *said], strict=False) if _differs(each, before)]
    with tempfile.TemporaryDirectory(prefix="healthwatch-") as folder:
        loaded = [_recorded(meta, Path(folder) / str(number), params) for number, (*_, meta) in enumerate(changes)]
    known: dict[str, set[str]] = defaultdict(set)
    for rule, names in (pair for each in loaded for pair in each.parameters.items()):
        known[rule].update(names)
    _refuse([*(found for each in loaded for found in _told(each, params)), *_unknown(params, known)])
    return tuple(
        Version(each.rules, meta.get("no_data_after", 200), run.frames_before(attempt, reload), reload is None)
        for each, (attempt, reload, meta) in zip(loaded, changes, strict=True)
    )


def _differs(one: Said, before: Said | None) -> bool:
    """Whether the engine is another one: also where an attempt reads what a reload before it could not look back at."""
    if before is None or (one[1] is None and before[1] is not None):
        return True
    return any(one[2].get(key) != before[2].get(key) for key in DECIDING)


def _recorded(meta: Meta, folder: Path, params: Params) -> Loaded:
    """The rules as they were, with those parameters changed that they have."""
    folder.mkdir()
    sources, overrides = write_rules(meta, folder), meta.get("override", {})
    known = load_rules(sources).parameters if params else {}
    own = {
        rule: {name: value for name, value in values.items() if name in known.get(rule, ())}
        for rule, values in params.items()
    }
    return load_rules(sources, _with_params(overrides, own))


def _is_log(path: Path) -> bool:
    """A file that is no run file; what is not there is for the run to refuse."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(len(SQLITE))
    return head != SQLITE and path.suffix != ".sqlite"


def _packs() -> list[str]:
    return [f"{BUILTIN}{pack}" for pack in resources.packs()]


def _usable(sources: Sequence[str | Path], overrides: Overrides, params: Params) -> tuple[Rule, ...]:
    loaded = load_rules(sources, _with_params(overrides, params))
    _refuse([*_told(loaded, params), *_unknown(params, loaded.parameters)])
    return loaded.rules


def _refuse(found: Sequence[Diagnostic]) -> None:
    if errors(found):
        raise Invalid(found)


def _with_params(overrides: Overrides, params: Params) -> Overrides:
    merged = {name: dict(override) for name, override in overrides.items()}
    for name, values in params.items():
        override = merged.setdefault(name, {})
        override["params"] = {**override.get("params", {}), **values}
    return merged


def _told(loaded: Loaded, params: Params) -> Iterator[Diagnostic]:
    """What is wrong with rules; what a parameter has brought about is told of that, not of the innocent file."""
    causes = {each.found: (each.rule, str(each.path[-1])) for each in loaded.overridden if each.path[0] == "params"}
    for found in loaded.diagnostics:
        rule, name = causes.get(found, ("", ""))
        if name in params.get(rule, {}):
            message = f"with {rule}.{name} = {params[rule][name]:g}: {found.message}"
            found = Diagnostic(found.code, found.severity, message, help=found.help)  # noqa: PLW2901
        yield found


def _unknown(params: Params, known: Mapping[str, Collection[str]]) -> Iterator[Diagnostic]:
    """Parameters that no rule has: a changed number that changes nothing would look like an answer."""
    for rule, values in params.items():
        if rule not in known:
            mend = meant(rule, known, "rules")
            yield Diagnostic("HW014", "error", f'no rule is called "{rule}"', help=mend)
            continue
        for name in [name for name in values if name not in known[rule]]:
            mend = suggest(name, known[rule], "its parameters") or "it has none"
            yield Diagnostic("HW019", "error", f'rule "{rule}" has no parameter "{name}"', help=mend)
