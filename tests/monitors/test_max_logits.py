"""The largest logit of a step, by head."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from healthwatch.monitors.layout import Stack
from healthwatch.monitors.max_logits import MaxLogits
from healthwatch.stream.location import location

LAYERS = [{"block": "decoder", "layer": "0"}, {"block": "decoder", "layer": "1"}]


@pytest.fixture
def logits() -> MaxLogits:
    return MaxLogits(LAYERS)


@pytest.fixture
def flush(logits: MaxLogits, flushing: Any) -> Any:
    return flushing(logits)


def test_the_maximum_over_the_micro_steps(logits: MaxLogits, flush: Any) -> None:
    logits.micro_step(Stack.of([np.array([1.0, 5.0]), np.array([2.0])]))
    logits.micro_step(Stack.of([np.array([3.0, 4.0]), np.array([1.0])]))
    assert flush() == {
        ("max_attention_logit", None): {("decoder", "0", "0"): 3, ("decoder", "1", "0"): 5, ("decoder", "0", "1"): 2}
    }


def test_each_step_starts_afresh(logits: MaxLogits, flush: Any) -> None:
    logits.micro_step(Stack.of([np.array([9.0]), None]))
    flush()
    logits.micro_step(Stack.of([np.array([2.0]), None]))
    assert flush()["max_attention_logit", None] == {("decoder", "0", "0"): 2}
    assert flush() == {}


def test_negative_maxima_are_seen(logits: MaxLogits, flush: Any) -> None:
    logits.micro_step(Stack.of([np.array([-7.0]), np.array([-1.0])]))
    logits.micro_step(Stack.of([np.array([-8.0]), np.array([-0.5])]))
    assert list(flush()["max_attention_logit", None].values()) == [-7, -0.5]


def test_one_nan_makes_the_head_nan(logits: MaxLogits, flush: Any) -> None:
    logits.micro_step(Stack.of([np.array([math.nan, 1.0]), np.array([1.0])]))
    logits.micro_step(Stack.of([np.array([3.0, math.inf]), np.array([1.0])]))
    values = list(flush()["max_attention_logit", None].values())
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, 1]


@pytest.mark.parametrize(
    ("path", "labels"),
    [
        ("decoder.layers.3.mlp.router", {"block": "decoder", "layer": "3"}),
        ("network.model.decoder.layers.11.self_attention", {"block": "decoder", "layer": "11"}),
        ("blocks.0.attn", {"block": "decoder", "layer": "0"}),
        ("layers.5.mlp.experts.7", {"block": "decoder", "layer": "5"}),
        ("mtp.layers.1.transformer_layer.mlp.router", {"block": "mtp", "mtp_idx": "1", "layer": "0"}),
        ("mtp.layers.0.layers.2.mlp.router", {"block": "mtp", "mtp_idx": "0", "layer": "2"}),
        ("mtp.transformer_layer.mlp.router", {"block": "mtp", "mtp_idx": "0", "layer": "0"}),
        ("router", {}),
        ("", {}),
        ("layers.router", {}),
    ],
)
def test_where_a_cell_stands(path: str, labels: dict[str, str]) -> None:
    assert location(path) == labels
