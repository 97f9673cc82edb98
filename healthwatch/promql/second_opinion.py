"""What the promql-parser package says: the grammar's reference, which knows no positions.

Our own reader finds the place of every problem; whatever it lets through must please the reference too.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import promql_parser

from healthwatch.promql.ast import Problem, ValueType
from healthwatch.promql.cursor import EXPERIMENTAL
from healthwatch.promql.signatures import TRAINING, Signature
from healthwatch.promql.tokens import Token


def refusal(tokens: tuple[Token, ...]) -> list[Problem]:
    """The reference's objection, if it has one, on the whole expression."""
    try:
        reference_tree(tokens)
    except ValueError as error:
        span = (tokens[0].span[0], tokens[-1].span[1])
        return [Problem("HW117", f"promql-parser refuses this: {error}", span)]
    return []


def reference_tree(tokens: tuple[Token, ...]) -> Any:
    """The reference's tree of these tokens; raises ValueError."""
    _register()
    return promql_parser.parse(" ".join(_plain(token) for token in tokens))


def _plain(token: Token) -> str:
    """A token in the words that both readers understand alike; literals are replaced, their values play no part."""
    if token.kind == "string":
        return '"s"'
    if token.kind in ("number", "duration"):
        return "1"
    return "x" if token.word in EXPERIMENTAL else token.text


@cache
def _register() -> None:
    """Teach the reference our own functions; it keeps them for the whole process."""
    promql_parser.register_extra_functions([_function(signature) for signature in TRAINING.values()])


def _function(signature: Signature) -> Any:
    optional = -1 if signature.most is None else signature.most - signature.least
    return promql_parser.Function(
        signature.name, [_TYPES[arg] for arg in signature.args], _TYPES[signature.result], optional, False
    )


_TYPES: dict[ValueType, Any] = {
    "scalar": promql_parser.ValueType.Scalar,
    "string": promql_parser.ValueType.String,
    "vector": promql_parser.ValueType.Vector,
    "matrix": promql_parser.ValueType.Matrix,
}
