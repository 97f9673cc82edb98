"""`when:` in, PromQL out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from healthwatch.diagnostics import indent_deeper, suggest
from healthwatch.promql.parse import parse
from healthwatch.rulefile.conditions import operand as op
from healthwatch.rulefile.conditions.operand import Operand
from healthwatch.rulefile.conditions.problems import Bad, ConditionProblem, Path, Scope
from healthwatch.rulefile.conditions.registry import RESERVED, registry
from healthwatch.rulefile.conditions.spec import BY, OVER, Condition, Group, Parameter
from healthwatch.rulefile.conditions.use import use
from healthwatch.rulefile.conditions.values import read_value, show, unknown_key
from healthwatch.stream.catalogue import Metric

Made = tuple[Operand | None, list[ConditionProblem]]

_MOST_LEVELS = 20
_OTHER_WORDS = {"and": "all", "or": "any", "nan": "nonfinite", "inf": "nonfinite", "absent": "missing"}
_QUORUM_KEYS = ("at_least", "by", "over")


@dataclass(frozen=True, slots=True)
class Expanded:
    """The rule's expression and its `detail`; without a text there is an error among the problems."""

    text: str | None
    detail: str | None
    problems: tuple[ConditionProblem, ...]


def expand(
    when: Any,
    metrics: Mapping[str, Metric],
    params: Mapping[str, float | int | str] | None = None,
    conditions: Mapping[str, Condition] | None = None,
) -> Expanded:
    """What a `when:` stands for. `metrics` are those known by name; `$name` stands for `params[name]`."""
    known = registry().conditions if conditions is None else conditions
    made, problems = _Reader(Scope(metrics, params or {}), known).when(when, ())
    if made is None:
        return Expanded(None, None, tuple(problems))
    parsed = parse(made.text)
    if parsed.expression is None:
        bad = Bad(f"this expands to what is no expression: {parsed.problems[0].message}", kind="bad expansion")
        return Expanded(None, None, (*problems, bad.at(())))
    return Expanded(made.text, made.detail, tuple(problems))


@dataclass(frozen=True, slots=True)
class _Reader:
    scope: Scope
    conditions: Mapping[str, Condition]

    def when(self, written: Any, path: Path) -> Made:
        """A condition or one of all, any, not, and a quorum beside it."""
        if len(path) > 2 * _MOST_LEVELS:
            return None, [Bad(f"conditions nest more than {_MOST_LEVELS} levels deep", kind="out of range").at(path)]
        if not isinstance(written, Mapping):
            help_ = "for instance when: {nonfinite: {metric: loss}}"
            return None, [Bad(f"a condition is needed here, not {show(written)}", help_).at(path)]
        problems = [self._unknown(name, written).at((*path, name)) for name in written if not self._known(name)]
        chosen = [name for name in written if self._known(name) and name != "quorum"]
        if len(chosen) != 1:
            problems += [] if problems and not chosen else [_not_one(chosen).at((*path, *chosen[1:2]))]
        made: Operand | None = None
        for name in chosen:
            made, found = self._chosen(name, written[name], (*path, name))
            problems += found
        if "quorum" in written:
            made, found = self._quorum(made, written["quorum"], (*path, "quorum"))
            problems += found
        return (None if _failed(problems) else made), problems

    def _known(self, name: object) -> bool:
        return isinstance(name, str) and (name in self.conditions or name in RESERVED)

    def _unknown(self, name: object, written: Mapping[Any, Any]) -> Bad:
        other = _OTHER_WORDS.get(str(name).lower())
        mend = f'did you mean "{other}"?' if other in (*self.conditions, *RESERVED) else indent_deeper(written, name)
        mend = mend or suggest(name, (*self.conditions, *RESERVED), "there are")
        return Bad(f"no condition is called {show(name)}", mend, "unknown condition", on="key")

    def _chosen(self, name: str, written: Any, path: Path) -> Made:
        match name:
            case "all":
                return self._several(written, path, op.all_of)
            case "any":
                return self._several(written, path, op.any_of)
            case "not":
                made, problems = self.when(written, path)
                return _keep(None if made is None else op.negated(made), problems, path)
            case _:
                return use(self.conditions[name], written, path, self.scope)

    def _several(self, written: Any, path: Path, combine: Callable[[Sequence[Operand]], Operand | Bad]) -> Made:
        if not isinstance(written, list) or not written:
            return None, [Bad(f'"{path[-1]}" is a list of conditions, not {show(written)}').at(path)]
        made = [self.when(each, (*path, position)) for position, each in enumerate(written)]
        problems = [problem for _, found in made for problem in found]
        operands = [operand for operand, _ in made if operand is not None]
        return _keep(combine(operands) if len(operands) == len(made) else None, problems, path)

    def _quorum(self, made: Operand | None, written: Any, path: Path) -> Made:
        keys = written if isinstance(written, Mapping) else {"at_least": written}
        problems = [
            unknown_key(key, _QUORUM_KEYS, "quorum").at((*path, key)) for key in keys if key not in _QUORUM_KEYS
        ]
        if "at_least" not in keys:
            problems.append(
                Bad('quorum needs "at_least"', "at_least: 5 or at_least: 5%", "missing key", on="key").at(path)
            )
            return None, problems
        inner = (*path, "at_least") if isinstance(written, Mapping) else path
        least = self._least(keys["at_least"])
        group = self._group(keys)
        problems += [least.at(inner)] if isinstance(least, Bad) else []
        problems += [group.at(path)] if isinstance(group, Bad) else []
        if made is None or isinstance(least, Bad) or isinstance(group, Bad):
            return None, problems
        return op.quorum(made, least, group), problems

    def _least(self, written: Any) -> int | float | Bad:
        """A number of series, or a share of them as a fraction."""
        if isinstance(written, str) and written.endswith("%"):
            percent = Parameter("quorum", "number", "", least=0, most=100)
            try:
                value = read_value(float(written[:-1]), percent, self.scope)
            except ValueError:
                return Bad(f"a share is a number of percent, such as 5%, not {show(written)}")
            if isinstance(value, float) and value == 0:
                return Bad("0% of the series always breach", kind="out of range")
            return value if isinstance(value, Bad) else float(value) / 100
        found: int | Bad = read_value(written, Parameter("quorum", "count", ""), self.scope)
        return found

    def _group(self, keys: Mapping[str, Any]) -> Group | Bad | None:
        given = [key for key in ("by", "over") if key in keys]
        if len(given) == 2:
            return Bad('"over" and "by" exclude each other', "keep one of them", "conflict", on="key", below=("by",))
        for key in given:
            labels = read_value(keys[key], BY if key == "by" else OVER, self.scope)
            if isinstance(labels, Bad):
                return Bad(labels.message, labels.help, labels.kind, (key, *labels.below), on=labels.on)
            return Group(labels, without=key == "over")
        return None


def _not_one(chosen: Sequence[str]) -> Bad:
    if not chosen:
        return Bad("when holds no condition", "for instance when: {nonfinite: {metric: loss}}", "missing key", on="key")
    help_ = "put them into a list under all: or any:"
    return Bad(f"when takes one condition, here are {len(chosen)}: {', '.join(chosen)}", help_, "conflict", on="key")


def _keep(made: Operand | Bad | None, problems: list[ConditionProblem], path: Path) -> Made:
    if isinstance(made, Bad):
        return None, [*problems, made.at(path)]
    return made, problems


def _failed(problems: Sequence[ConditionProblem]) -> bool:
    return any(problem.severity == "error" for problem in problems)
