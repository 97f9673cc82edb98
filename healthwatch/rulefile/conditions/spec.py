"""What a condition is: its parameters, the PromQL that it stands for, and its page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal[
    "metric", "select", "labels", "number", "steps", "count", "choice", "flag", "wall", "count or metric"
]
Shape: TypeAlias = Literal["series", "group", "none"]

INVERSE = {">": "<=", "<=": ">", "<": ">=", ">=": "<", "==": "!=", "!=": "=="}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One key of a condition. `steps` and `count` are whole numbers from 1; `wall` is a duration such as `10m`.

    `least` and `most` bound a number; `open_bounds` excludes the bounds themselves.
    """

    name: str
    kind: Kind
    help: str
    default: Any = None
    required: bool = False
    least: float | None = None
    most: float | None = None
    open_bounds: bool = False
    choices: tuple[str, ...] = ()
    example: Any = None


@dataclass(frozen=True, slots=True)
class Group:
    """How series are aggregated, and how a series finds its aggregate."""

    labels: tuple[str, ...]
    without: bool

    @property
    def clause(self) -> str:
        return f"{'without' if self.without else 'by'} ({', '.join(self.labels)})"

    @property
    def matching(self) -> str:
        return f"{'ignoring' if self.without else 'on'} ({', '.join(self.labels)})"


@dataclass(frozen=True, slots=True)
class Arguments:
    """The parameters of one use, read and complete. `selector` is PromQL for the series it is about."""

    values: Mapping[str, Any]
    selector: str = ""
    group: Group | None = None
    metrics: int = 1  # how many metrics stand behind the selector

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def given(self, name: str) -> bool:
        return self.values.get(name) is not None

    def text(self, name: str) -> str:
        """A number as PromQL has it."""
        return number(self.values[name])

    def window(self, offset: int = 0, *, name: str = "window") -> str:
        """The range of samples in the window, `offset` steps back."""
        back = f" offset {offset}" if offset else ""
        return f"{self.selector}[{self.values[name]}]{back}"

    def finite(self, offset: int = 0) -> str:
        """As `window`, without NaN and infinities: one of them would spoil a whole standard range function."""
        return f"finite({self.window(offset)})"

    def level(self) -> str:
        """The mean over the window, or the newest sample where no window is given."""
        return f"avg_over_time({self.finite()})" if self.given("window") else self.selector


@dataclass(frozen=True, slots=True)
class Test:
    """A comparison: what breaches, what breaches where it is negated, and the value without the comparison."""

    __test__ = False  # pytest collects classes of this name

    text: str
    inverse: str
    value: str

    @classmethod
    def of(cls, value: str, op: str, bound: str) -> Test:
        return cls(f"{value} {op} {bound}", f"{value} {INVERSE[op]} {bound}", value)


@dataclass(frozen=True, slots=True)
class Guard:
    """What must be there for a test to count; it stays as it is where the condition is negated."""

    text: str
    matching: str = ""

    def __str__(self) -> str:
        return f"and {self.matching} {self.text}" if self.matching else f"and {self.text}"


@dataclass(frozen=True, slots=True)
class Expansion:
    """The PromQL of a condition: tests joined by one word, then guards. `detail` lists the series behind a group."""

    tests: tuple[Test, ...]
    guards: tuple[Guard, ...] = ()
    join: Literal["and", "or"] = "and"
    shape: Shape = "series"
    detail: str | None = None
    negatable: bool = True

    @property
    def text(self) -> str:
        return self._joined([test.text for test in self.tests], self.join)

    @property
    def inverse(self) -> str:
        """De Morgan: inverted comparisons, so that what has no data does not breach."""
        return self._joined([test.inverse for test in self.tests], "or" if self.join == "and" else "and")

    @property
    def value(self) -> str:
        """The series that could breach."""
        return self._joined([self.tests[0].value], "and")

    def _joined(self, tests: list[str], word: str) -> str:
        text = f" {word} ".join(tests)
        if self.guards and word == "or" and len(tests) > 1:
            text = f"({text})"
        return " ".join([text, *map(str, self.guards)])


@dataclass(frozen=True, slots=True)
class Issue:
    """Parameters that do not go together; `name` is the one at fault, None the condition as a whole."""

    name: str | None
    message: str
    help: str = ""
    kind: Literal["missing key", "out of range", "conflict"] = "conflict"


def _nothing(_: Arguments) -> Iterable[Issue]:
    return ()


def _never(_: Arguments) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Condition:
    """An entry of the `when:` catalogue.

    `check` finds parameters that do not go together. `keeps_name` tells where the result still carries the metric's
    name, so that several metrics can stand in one selector; elsewhere each one is expanded and told apart by a label
    `metric`. `forms` are the expansions as the page shows them: (title, text).
    """

    name: str
    summary: str
    finds: str
    source: str
    example: Mapping[str, Any]
    not_for: str
    labels: str
    value: str
    parameters: tuple[Parameter, ...]
    expand: Callable[[Arguments], Expansion]
    formula: str
    check: Callable[[Arguments], Iterable[Issue]] = _nothing
    keeps_name: Callable[[Arguments], bool] = _never
    examples: tuple[Mapping[str, Any], ...] = field(default=())  # further ones

    def parameter(self, name: str) -> Parameter | None:
        return next((each for each in self.parameters if each.name == name), None)


def number(value: float) -> str:
    """A number as short as it can be written, and no shorter."""
    return repr(float(value)).removesuffix(".0")


METRIC = Parameter("metric", "metric", "The metric, or a list of metrics.", required=True, example="grad_norm")
SELECT = Parameter(
    "select",
    "select",
    "Which of the metric's series: a value per label, plain or with `=~` (regular expression), `!~` or `!=` before it.",
    example={"param": "=~.*attention.*"},
)
SERIES = (METRIC, SELECT)
OVER = Parameter(
    "over",
    "labels",
    "Labels to aggregate away; all other labels stay (PromQL's `without`). Preferred to `by`.",
    example=["expert"],
)
BY = Parameter("by", "labels", "Labels to keep; all others are aggregated away (PromQL's `by`).", example=["layer"])
GROUPING = (OVER, BY)


def min_samples(least: int) -> Parameter:
    return Parameter(
        "min_samples", "count", "Below this number of finite baseline samples there is no verdict.", default=least
    )


def steps(name: str, help_: str, default: int | None = None, *, required: bool = False) -> Parameter:
    return Parameter(name, "steps", help_, default=default, required=required, example=default or 50)


def direction(default: str, help_: str) -> Parameter:
    choices = ("up", "down", "both")
    return Parameter("direction", "choice", help_, default=default, choices=choices)
