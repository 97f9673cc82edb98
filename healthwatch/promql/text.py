"""Expressions written out again, in one canonical form; durations in steps."""

from __future__ import annotations

from healthwatch.promql import ast
from healthwatch.stream.ticks import TICKS_PER_STEP


def written(node: ast.Expr) -> str:
    """The text of an expression; parsed again (not as a rule) it is the same tree."""
    match node:
        case ast.Number(value=value):
            return _number(value)
        case ast.String(value=value):
            return _quoted(value)
        case ast.Unary(expr=inner):
            return f"-{written(inner)}"
        case ast.Paren(expr=inner):
            return f"({written(inner)})"
        case ast.VectorSelector() | ast.MatrixSelector() | ast.Subquery():
            return _samples(node)
        case ast.Call(function=function, args=args):
            return f"{function}({', '.join(map(written, args))})"
        case ast.Aggregate():
            return _aggregate(node)
        case ast.Binary():
            return _binary(node)


def _samples(node: ast.VectorSelector | ast.MatrixSelector | ast.Subquery) -> str:
    match node:
        case ast.VectorSelector():
            return _selector(node) + _modifiers(node)
        case ast.MatrixSelector(selector=selector, window=window):
            return f"{_selector(selector)}[{_steps(window)}]{_modifiers(selector)}"
        case ast.Subquery(expr=inner, window=window, step=step):
            every = "" if step is None else _steps(step)
            return f"{written(inner)}[{_steps(window)}:{every}]{_modifiers(node)}"


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _steps(ticks: int) -> str:
    return _number(ticks / TICKS_PER_STEP)


def _selector(node: ast.VectorSelector) -> str:
    matchers = ", ".join(f"{each.name}{each.op}{_quoted(each.value)}" for each in node.matchers)
    return (node.metric or "") + (f"{{{matchers}}}" if matchers or not node.metric else "")


def _modifiers(node: ast.VectorSelector | ast.Subquery) -> str:
    at = ""
    if node.at is not None:
        at = f" @ {node.at.bound}()" if node.at.bound else f" @ {_steps(node.at.tick or 0)}"
    return at + (f" offset {_steps(node.offset)}" if node.offset else "")


def _aggregate(node: ast.Aggregate) -> str:
    grouping = ""
    if node.labels or node.without:
        grouping = f" {'without' if node.without else 'by'} ({', '.join(node.labels)}) "
    parameter = "" if node.param is None else f"{written(node.param)}, "
    return f"{node.op}{grouping}({parameter}{written(node.expr)})"


def _binary(node: ast.Binary) -> str:
    words = [written(node.left), node.op]
    if node.bool_modifier:
        words.append("bool")
    if (matching := node.matching) is not None:
        words.append(f"{'on' if matching.on else 'ignoring'} ({', '.join(matching.labels)})")
        if matching.group:
            words.append(f"group_{matching.group} ({', '.join(matching.include)})")
    return " ".join([*words, written(node.right)])
