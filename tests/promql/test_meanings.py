"""Everything in the language has a meaning, and what is said of it is so."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from healthwatch.promql import Program, Vector, parse, selectors, syntax
from healthwatch.promql.ast import VectorSelector, walk
from healthwatch.promql.meaning import KINDS, MEANINGS, Meaning
from healthwatch.promql.meaning.page import brief, page
from healthwatch.promql.operators import ARITHMETIC, COMPARISON, SET_OPERATORS
from healthwatch.promql.pick import PICKS
from healthwatch.promql.signatures import FUNCTIONS, TRAINING
from healthwatch.promql.tokens import tokenize
from healthwatch.stream import History, SeriesTable, tick_of
from healthwatch.stream.catalogue import catalogue

LAST = 520
PAGE = page()
ALL = pytest.mark.parametrize("meaning", MEANINGS.values(), ids=lambda each: each.name)
CALLED = pytest.mark.parametrize(
    "meaning", [each for each in MEANINGS.values() if each.name in FUNCTIONS], ids=lambda each: each.name
)


def keywords() -> set[str]:
    """The words (and @) that the grammar asks for by name."""
    found = set()
    for module in (syntax, selectors):
        for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("accept", "at")
            ):
                found |= {str(each.value) for each in node.args if isinstance(each, ast.Constant)}
    return {word for word in found if word.isidentifier() or word == "@"}


def test_nothing_in_the_language_lacks_a_meaning_and_nothing_else_has_one() -> None:
    assert {"by", "without", "on", "group_left", "offset", "bool", "@"} <= keywords()
    operators = {*ARITHMETIC, *COMPARISON, *SET_OPERATORS, "=", "=~", "!~"}
    language = {*FUNCTIONS, *syntax.AGGREGATIONS, *operators, *keywords(), "[window]", "[window:step]"}
    assert set(MEANINGS) == language
    assert {name for name, each in MEANINGS.items() if each.kind == "own"} == set(TRAINING)
    assert {name for name, each in MEANINGS.items() if each.kind == "aggregation"} == set(syntax.AGGREGATIONS)
    assert set(PICKS) < set(syntax.AGGREGATIONS)


@ALL
def test_an_example_shows_the_thing_itself_on_metrics_that_there_are(meaning: Meaning) -> None:
    words = [token.text for token in tokenize(meaning.example).tokens]
    assert set(re.findall(r"[\[\]:]", meaning.name) or [meaning.name]) <= set(words)
    expression = parse(meaning.example, rule=False).expression
    assert expression is not None
    read = {each.metric for each in walk(expression.tree) if isinstance(each, VectorSelector)}
    assert read <= set(catalogue())


@ALL
def test_a_rule_takes_every_example_but_those_that_say_so(meaning: Meaning) -> None:
    refused = parse(meaning.example).expression is None
    assert refused == (meaning.name in ("@", "start", "end", "range", "step")) == ("Not in a rule" in brief(meaning))


@CALLED
def test_the_arguments_are_those_of_the_signature(meaning: Meaning) -> None:
    name, _, inner = meaning.usage.removesuffix(")").partition("(")
    signature, written = FUNCTIONS[meaning.name], [each for each in inner.split(", ") if each]
    assert name == meaning.name
    repeated = any(each.endswith("...") for each in written)
    required = [each for each in written if " = " not in each and not each.endswith("...")]
    assert (len(required), None if repeated else len(written)) == (signature.least, signature.most)
    for argument, kind in zip(written, signature.args, strict=True):
        assert (argument.split(" = ")[0] == "window") == (kind == "matrix")
        assert (argument.split(" = ")[0] == "vector") == (kind == "vector")


@ALL
def test_it_is_said_in_one_sentence(meaning: Meaning) -> None:
    assert re.fullmatch(r"[A-Z\d`].{10,}[.]", meaning.sentence)
    said = brief(meaning)
    assert said.startswith(f"{meaning.name}: {KINDS[meaning.kind]}\n\n  {meaning.usage}\n\n{meaning.sentence}\n")
    assert said.endswith(f"  {meaning.example}")


@pytest.mark.parametrize("name", sorted(TRAINING))
def test_of_our_own_everything_is_said(name: str) -> None:
    meaning = MEANINGS[name]
    arguments = {each.split(" = ")[0] for each in meaning.usage.split("(")[1].removesuffix(")").split(", ") if each}
    compared = {"not for"} if "min_samples" in arguments else set()
    assert {"formula", "unit", "no value", "NaN", "labels"} | arguments | compared == set(meaning.details)
    section = PAGE.split(f"\n### {name}\n")[1].split("\n##")[0]
    assert [text for text in (meaning.usage, *meaning.details.values(), meaning.example) if text not in section] == []


@ALL
def test_the_page_has_it(meaning: Meaning) -> None:
    assert f"`{meaning.usage}`" in PAGE
    assert meaning.sentence in PAGE


class Training:
    """A run of some hundred steps in which nearly everything happens at the last one."""

    def __init__(self) -> None:
        self.history = History(SeriesTable())
        random = np.random.default_rng(7)
        params = [{"param": f"layers.{layer}.{part}"} for layer in range(3) for part in ("attn.wq", "mlp.w1")]
        experts = [{"block": "decoder", "layer": f"{n // 4}", "expert": f"{n % 4}"} for n in range(8)]
        for step in range(1, LAST + 1):
            now = step == LAST
            self.write(step, "loss", [40.0 if now else 2.5 + 0.1 * random.random()])
            self.write(step, "grad_norm", [30.0 if now else 1 + 0.1 * random.random()])
            norms = 1 + random.random(len(params))
            self.write(step, "micro_norm", [*norms[:-2], 90.0, math.nan] if now else [*norms], params)
            self.write(step, "tokens_per_expert", [0, *range(1, 8)], experts)
            self.write(step, "max_attention_logit", [0.1 * step] * 2, [{"layer": "0"}, {"layer": "1"}])
            self.write(step, "step_time", [2.0 if now else 1.0])
            self.write(step, "loss_scale", [1024.0 if now else 2048.0])
            self.write(step, "consumed_samples", [32.0 * step])
            self.write(step, "attempt_step", [step % 300])
            self.write(step, "overflow", [float(now)])
        self.program = Program(self.history)
        self.program.stalled_seconds = 700.0

    def write(self, step: int, metric: str, values: list[float], labels: list[dict[str, str]] | None = None) -> None:
        series = self.history.table.register(metric, labels or [{}])
        self.history.append(tick_of(step), series, np.array(values, float))

    def at_the_end(self, text: str) -> Vector:
        expression = parse(text, rule=False).expression
        assert expression is not None
        return self.program.add(expression).evaluate(tick_of(LAST))


@pytest.fixture(scope="module")
def training() -> Training:
    return Training()


@ALL
def test_an_example_has_a_result_when_what_it_looks_for_happens(meaning: Meaning, training: Training) -> None:
    assert training.at_the_end(meaning.example).kept.any()


def value(samples: list[float], text: str) -> float | None:
    """The result for one series of so many steps, None where it has none."""
    history = History(SeriesTable())
    series = history.table.register("x", [{}])
    for step, sample in enumerate(samples, 1):
        history.append(tick_of(step), series, np.array([sample]))
    expression = parse(text).expression
    assert expression is not None
    result = Program(history).add(expression).evaluate(tick_of(len(samples)))
    return float(result.values[result.kept][0]) if result.kept.any() else None


def test_a_number_on_one_side_leaves_the_elements_of_the_other(training: Training) -> None:
    kept = [training.at_the_end(text) for text in ("2 < loss", "loss > 2")]
    assert [vector.values[vector.kept].tolist() for vector in kept] == [[40.0], [40.0]]


@pytest.mark.parametrize(("name", "choose"), [("max", max), ("min", min)])
def test_the_help_for_the_larger_of_two_gives_it(name: str, choose: Callable[[float, float], float]) -> None:
    for arguments, two in {"x, 3": (2, 3), "1, x": (1, 2), "x, x + 1": (2, 3), "x + 1, x": (3, 2)}.items():
        help_ = parse(f"{name}({arguments})").problems[0].help
        assert value([2.0], help_.removeprefix("write ")) == choose(*two)


@CALLED
def test_a_wrong_number_of_arguments_is_told_in_the_words_of_the_page(meaning: Meaning) -> None:
    (problem,) = [each for each in parse(f"{meaning.name}({'x, ' * 8}x)").problems if each.code == "HW104"] or [None]
    assert (problem is None) == (FUNCTIONS[meaning.name].most is None)
    assert problem is None or problem.help == meaning.usage


BEFORE = [*(float(n) for n in range(1, 18)), math.nan, math.inf]  # 17 finite samples, their median and mean are 9
WEIGHTS = [(1 - 2 / 21) ** (17 - n) for n in range(1, 18)]  # of a window of 20
MEAN = sum(n * weight for n, weight in enumerate(WEIGHTS, 1)) / sum(WEIGHTS)
FORMULAS = {
    "spike_ratio": 27 / 9,
    "robust_zscore": (27 - 9) / (1.4826 * 4),
    "zscore": (27 - 9) / math.sqrt(24),
    "ema": MEAN,
    "ema_ratio": 27 / MEAN,
    "growth": 27 / 1,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_ours_are_what_their_formula_says(name: str) -> None:
    assert value([*BEFORE, 27.0], f"{name}(x[20])") == pytest.approx(FORMULAS[name], rel=1e-12)


@pytest.mark.parametrize("name", FORMULAS)
def test_ours_have_no_value_when_they_say_so(name: str) -> None:
    least = int(MEANINGS[name].usage.split(" = ")[1].removesuffix(")"))
    assert value([*BEFORE, math.nan], f"{name}(x[20])") is None
    assert value([5.0] * least, f"{name}(x[20])") is None  # the last one is now
    assert value([5.0] * (least + 1), f"{name}(x[20], {least + 1})") is None
    assert value([5.0] * 21, f"{name}(x[20], 0)") is not None
    assert value([0.0] * 21, f"{name}(x[20])") == (0.0 if name == "ema" else None)
    infinite = value([*BEFORE, math.inf], f"{name}(x[20])")
    assert infinite == (value([*BEFORE, 27.0], "ema(x[20])") if name == "ema" else math.inf)


def test_growth_needs_a_sample_from_the_first_half() -> None:
    assert value([5.0] * 22, "growth(x[40])") == 1.0
    assert value([5.0] * 21, "growth(x[40])") is None


def test_nonfinite_and_finite_on_what_is_not() -> None:
    assert value([1.0, math.inf], "nonfinite(x)") == math.inf
    assert value([math.nan, 1.0], "nonfinite(x)") is None
    assert value([math.nan, 4.0, -math.inf], "sum_over_time(finite(x[9]))") == 4.0
    assert value([math.nan, math.inf], "sum_over_time(finite(x[9]))") is None
