"""What to write instead of what does not fit, in the words of the expression itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from healthwatch.promql import ast, misnomers
from healthwatch.promql.ast import Expr, ValueType
from healthwatch.promql.signatures import FUNCTIONS, Signature
from healthwatch.promql.syntax import AGGREGATIONS, COMPARISONS, PARAMETRIC, SET_OPERATORS
from healthwatch.stream.catalogue import PLACEMENT, catalogue

LEAVES: dict[type, ValueType] = {
    ast.Number: "scalar",
    ast.String: "string",
    ast.VectorSelector: "vector",
    ast.MatrixSelector: "matrix",
}
_ADVICE: dict[tuple[ValueType, ValueType], str] = {
    ("vector", "matrix"): "give it a window in steps: x[50], or a subquery: (...)[50:]",
    ("matrix", "vector"): "leave out the window, or wrap it: avg_over_time({})",
    ("scalar", "vector"): "vector(...) makes a vector of a number",
    ("vector", "scalar"): "scalar(...) makes a number of a vector with one series",
}


class Proposals:
    """`text` is what `tree` was read from."""

    def __init__(self, text: str, tree: Expr) -> None:
        self.text = text
        self.tree = tree

    def advice(self, node: Expr, found: ValueType, wanted: ValueType) -> str:
        return _ADVICE.get((found, wanted), "").replace("{}", self.written(node))

    def between_vectors(self, node: ast.Binary) -> str:
        """Where `on` and the like stand that follow an operator with a number."""
        modifier = self.text[node.op_span[1] : node.right.span[0]].strip()
        return f"it stands behind the operator between two vectors, as in a > {modifier} 2 * b"

    def with_window(self, node: ast.Call, signature: Signature) -> str:
        """A call with the window in brackets that stands as an argument behind what it is of."""
        at = signature.args.index("matrix") if "matrix" in signature.args else len(node.args)
        vector, window = node.args[at : at + 2] if len(node.args) > max(at + 1, signature.least) else (None, None)
        if not isinstance(vector, ast.VectorSelector) or not isinstance(window, ast.Number):
            return ""
        if vector.offset or vector.at or window.value < 1 or window.value % 1:
            return ""
        ranged = f"{self.written(vector)}[{window.value:.15g}]"
        others = [*map(self.written, node.args)]
        return f"write {node.function}({', '.join((*others[:at], ranged, *others[at + 2 :]))})"

    def in_parentheses(self, whole: ast.Binary, side: Expr) -> str:
        inner = side.expr.span[1] if isinstance(side, ast.Subquery) else side.span[1]
        window = self.text[inner : side.span[1]].strip()
        return f"put what the window is of in parentheses: ({self.text[whole.span[0] : inner]}){window}"

    def along_the_window(self, user: str, args: Iterable[Expr | None]) -> str:
        """What was meant by an aggregation or a function of a range."""
        name = f"{user}_over_time"
        return f"write {name}({self.listed(args)})" if name in FUNCTIONS else ""

    def of_call(self, node: ast.Call, name: str) -> str:
        """What was meant by calling the aggregation `name`."""
        return self._by_labels(node, name) or self._of_two(node, name)

    def _of_two(self, node: ast.Call, name: str) -> str:
        """The larger or the smaller of two, which somebody has asked an aggregation for."""
        types = tuple(map(outline, node.args))
        form = misnomers.OF_TWO.get((name, types))
        if form is None:
            return ""
        start, end = node.args[0].span[0], node.args[1].span[1]
        before, after = self.text[node.span[0] : start], self.text[end : node.span[1]]
        grouped = "(" in after or before.count("(") > 1
        place = "" if grouped else self.place(node)
        chosen = misnomers.placed(form, [*map(self._operand_written, node.args)], place)
        return f"write {before}{chosen}{after}" if grouped else f"write {chosen}"

    def _by_labels(self, node: ast.Call, name: str) -> str:
        """An aggregation by the labels that stand as arguments behind what it is of."""
        count = 2 if name in PARAMETRIC else 1
        args, rest = node.args[:count], [*map(self.written, node.args[count:])]
        known = {
            *PLACEMENT,
            *(label for metric in catalogue().values() for label in metric.labels),
        } - catalogue().keys()
        plain = self.text[node.name_span[1] : node.args[0].span[0]].strip() == "(" if args else False
        if name not in AGGREGATIONS or not plain or not rest or not known.issuperset(rest):
            return ""
        return f"write {name} by ({', '.join(rest)}) ({self.listed(args)})"

    def _operand_written(self, node: Expr) -> str:
        """In brackets where a comparison would bind otherwise."""
        loose = isinstance(node, ast.Binary) and node.op in (COMPARISONS | SET_OPERATORS)
        return f"({self.written(node)})" if loose else self.written(node)

    def place(self, node: Expr) -> str:
        """The operator of which a node is an operand, `-` for a sign, `[` for a window, empty where it is of none."""
        return self._places.get(id(node), "")

    @cached_property
    def _places(self) -> Mapping[int, str]:
        places: dict[int, str] = {}
        for parent in ast.walk(self.tree):
            if isinstance(parent, ast.Binary | ast.Unary | ast.Subquery):
                op = parent.op if isinstance(parent, ast.Binary) else "-" if isinstance(parent, ast.Unary) else "["
                places |= dict.fromkeys(map(id, ast.children(parent)), op)
        return places

    def written(self, node: Expr) -> str:
        return self.text[slice(*node.span)]

    def listed(self, args: Iterable[Expr | None]) -> str:
        return ", ".join(self.written(arg) for arg in args if arg is not None)


def outline(node: Expr) -> ValueType | None:
    """The type that a node seems to have, whatever may be wrong inside."""
    match node:
        case ast.Paren(expr=inner) | ast.Unary(expr=inner):
            return outline(inner)
        case ast.Binary(left=left, right=right):
            return "scalar" if outline(left) == outline(right) == "scalar" else "vector"
        case ast.Call(function=function):
            return (
                FUNCTIONS[function].result if function in FUNCTIONS else "vector" if function in AGGREGATIONS else None
            )
        case ast.Subquery():
            return "matrix"
        case ast.Aggregate():
            return "vector"
        case _:
            return LEAVES[type(node)]
