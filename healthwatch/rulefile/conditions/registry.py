"""The catalogue of conditions: what is shipped and what others have installed enter by the same door."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

from healthwatch.rulefile.conditions.spec import Condition

GROUP = "healthwatch.conditions"
RESERVED = frozenset(("all", "any", "not", "quorum"))


@dataclass(frozen=True, slots=True)
class Registry:
    """Every condition by name; `failures` says which entry points gave none, and why."""

    conditions: Mapping[str, Condition]
    failures: tuple[str, ...] = ()


@cache
def registry() -> Registry:
    """What is installed, read once."""
    return collect(entry_points(group=GROUP))


def collect(points: Iterable[EntryPoint]) -> Registry:
    """Load entry points, each a Condition or several of them; one that fails leaves the others alone."""
    conditions: dict[str, Condition] = {}
    failures: list[str] = []
    for point in sorted(points, key=_shipped_first):
        failure = _enter_all(point, conditions)
        failures += [failure] if failure else []
    return Registry(MappingProxyType(conditions), tuple(failures))


def _enter_all(point: EntryPoint, conditions: dict[str, Condition]) -> str:
    try:
        for condition in _load(point):
            _enter(condition, conditions)
    except Exception as error:
        return f"{point.name} = {point.value}: {type(error).__name__}: {error}"
    return ""


def _shipped_first(point: EntryPoint) -> tuple[bool, str]:
    return (not point.value.startswith("healthwatch."), point.name)


def _load(point: EntryPoint) -> tuple[Condition, ...]:
    loaded = point.load()
    found = (loaded,) if isinstance(loaded, Condition) else tuple(loaded)
    for each in found:
        if not isinstance(each, Condition):
            raise TypeError(f"{each!r} is not a Condition")
    return found


def _enter(condition: Condition, conditions: dict[str, Condition]) -> None:
    if condition.name in RESERVED or not condition.name.isidentifier():
        raise ValueError(f'"{condition.name}" can\'t be the name of a condition')
    if condition.name in conditions:
        raise ValueError(f'there is a condition "{condition.name}" already')
    conditions[condition.name] = condition
