"""The types of an expression, and what it must not call."""

from __future__ import annotations

from healthwatch.diagnostics import likely_typo
from healthwatch.promql import ast, misnomers
from healthwatch.promql.ast import Expr, Problem, Span, ValueType
from healthwatch.promql.proposals import LEAVES, Proposals, outline
from healthwatch.promql.regex import compile_regex
from healthwatch.promql.selectors import valid_label
from healthwatch.promql.signatures import FUNCTIONS, Signature
from healthwatch.promql.syntax import AGGREGATIONS, COMPARISONS, PARAMETRIC, SET_OPERATORS

_WORDS: dict[ValueType, str] = {
    "scalar": "a number",
    "string": "a string",
    "vector": "a vector",
    "matrix": "a range of samples",
}
_LOOKS_AHEAD = frozenset(("start", "end", "range", "step"))


def check(tree: Expr, text: str, *, rule: bool) -> list[Problem]:
    """Every function, argument and operand that does not fit, in source order; `text` is what `tree` was read from."""
    checker = _Checker(text, tree, rule=rule)
    found = checker.type_of(tree)
    if rule and found in ("matrix", "string"):
        checker.report("HW105", f"a rule needs a vector or a number, this is {_WORDS[found]}", tree.span)
    return sorted(checker.problems, key=lambda problem: problem.span)


def type_of(tree: Expr) -> ValueType | None:
    """What an expression that has no problems evaluates to."""
    return _Checker("", tree, rule=False).type_of(tree)


class _Checker:
    def __init__(self, text: str, tree: Expr, *, rule: bool) -> None:
        self.proposals = Proposals(text, tree)
        self.rule = rule
        self.problems: list[Problem] = []

    def report(self, code: str, message: str, span: Span, help: str = "") -> None:  # noqa: A002
        self.problems.append(Problem(code, message, span, help))

    def type_of(self, node: Expr) -> ValueType | None:
        """The node's type, everything below it checked; None where it can't be told."""
        match node:
            case ast.Subquery(expr=inner):
                self.expect(inner, "vector", "a subquery")
                return "matrix"
            case ast.Paren(expr=inner):
                return self.type_of(inner)
            case ast.Unary(expr=inner):
                return self._unary(inner)
            case ast.Binary():
                return self._binary(node)
            case ast.Aggregate():
                return self._aggregate(node)
            case ast.Call():
                return self._call(node)
            case _:
                return LEAVES[type(node)]

    def expect(self, node: Expr, wanted: ValueType, user: str, mend: str = "") -> None:
        """`mend` says what to write in place of a range."""
        found = self.type_of(node)
        if found is not None and found != wanted:
            help_ = (mend if found == "matrix" else "") or self.proposals.advice(node, found, wanted)
            self.report("HW105", f"{user} takes {_WORDS[wanted]}, this is {_WORDS[found]}", node.span, help_)

    def _unary(self, inner: Expr) -> ValueType | None:
        found = self.type_of(inner)
        if found in ("string", "matrix"):
            self.report("HW105", f"a sign takes a number or a vector, this is {_WORDS[found]}", inner.span)
            return None
        return found

    def _binary(self, node: ast.Binary) -> ValueType | None:
        whole = node if isinstance(node.right, ast.Subquery) else None
        sides = [self._operand(node.op, node.left), self._operand(node.op, node.right, whole)]
        if node.op in SET_OPERATORS:
            for side, found in zip((node.left, node.right), sides, strict=True):
                if found == "scalar":
                    self.report("HW105", f'"{node.op}" joins vectors, this is a number', side.span)
        if sides == ["scalar", "scalar"] and node.op in COMPARISONS and not node.bool_modifier:
            shown = self.proposals.written(node.left), self.proposals.written(node.right)
            help_ = f"write vector({shown[0]}) {node.op} {shown[1]}, or {node.op} bool for 0 or 1"
            self.report("HW115", "a comparison of two numbers needs bool", node.op_span, help_)
        if node.matching and node.matching.labels and "scalar" in sides and node.op not in SET_OPERATORS:
            help_ = self.proposals.between_vectors(node)
            self.report("HW115", f'"{node.op}" matches labels only between two vectors', node.op_span, help_)
        if None in sides:
            return None
        return "vector" if "vector" in sides else "scalar"

    def _operand(self, op: str, side: Expr, whole: ast.Binary | None = None) -> ValueType | None:
        """`whole` where the side is a subquery that may have been meant to have all of it inside."""
        found = self.type_of(side)
        if found in ("string", "matrix"):
            help_ = (
                self.proposals.advice(side, found, "vector")
                if whole is None
                else self.proposals.in_parentheses(whole, side)
            )
            self.report("HW105", f'"{op}" takes numbers and vectors, this is {_WORDS[found]}', side.span, help_)
            return None
        return found

    def _aggregate(self, node: ast.Aggregate) -> ValueType:
        wanted: ValueType = "string" if node.op == "count_values" else "scalar"
        both = (node.param, node.expr) if node.param is not None and node.op in PARAMETRIC else ()
        if self._swapped(node.op, both, (wanted, "vector")):
            return "vector"
        if node.param is not None:
            self.expect(node.param, wanted, f"the parameter of {node.op}")
            if node.op == "count_values":
                self._label_name(node.param)
        self.expect(node.expr, "vector", node.op, self.proposals.along_the_window(node.op, (node.param, node.expr)))
        return "vector"

    def _swapped(self, user: str, args: tuple[Expr, ...], wanted: tuple[ValueType, ...]) -> bool:
        """Two arguments that are right the other way round, told as one problem."""
        found = tuple(map(outline, args))
        if len(args) != 2 or found != (*reversed(wanted),) or found == wanted:
            return False
        for arg in args:
            self.type_of(arg)
        span = (args[0].span[0], args[1].span[1])
        mend = f"write {user}({self.proposals.written(args[1])}, {self.proposals.written(args[0])})"
        self.report("HW105", f"the arguments of {user} are the wrong way round", span, mend)
        return True

    def _windowless(self, node: ast.Call, signature: Signature) -> bool:
        """A window that stands as an argument of its own, told as one problem."""
        mend = self.proposals.with_window(node, signature)
        if not mend:
            return False
        for arg in node.args:
            self.type_of(arg)
        at = signature.args.index("matrix")
        span = (node.args[at].span[0], node.args[at + 1].span[1])
        self.report("HW105", f"{node.function} takes a range of samples, this is a vector and a number", span, mend)
        return True

    def _pattern(self, node: Expr) -> None:
        node = ast.unwrapped(node)
        if isinstance(node, ast.String):
            try:
                compile_regex(node.value)
            except ValueError as error:
                self.report("HW110", f"illegal regular expression: {error}", node.span, "the syntax is that of RE2")

    def _label_name(self, node: Expr) -> None:
        node = ast.unwrapped(node)
        if isinstance(node, ast.String) and not valid_label(node.value):
            self.report("HW113", f"invalid label name {_go_quote(node.value)}", node.span)

    def _call(self, node: ast.Call) -> ValueType | None:
        signature = FUNCTIONS.get(node.function)
        if signature is None:
            for arg in node.args:
                self.type_of(arg)
            (self._miscounted if node.function in AGGREGATIONS else self._unknown)(node)
            return None
        if self.rule and node.function in _LOOKS_AHEAD:
            message = f"{node.function}() looks at the evaluated range, which a rule can't do"
            self.report("HW108", message, node.name_span)
        if self._windowless(node, signature):
            return signature.result
        self._count(node, signature)
        if self._swapped(node.function, node.args, signature.args):
            return signature.result
        mend = self.proposals.along_the_window(node.function, node.args)
        for position, arg in enumerate(node.args):
            if signature.args and (signature.most is None or position < signature.most):
                self.expect(arg, signature.type_of(position), node.function, mend)
            else:
                self.type_of(arg)
        if node.function in ("label_replace", "label_join") and len(node.args) > 1:
            self._label_name(node.args[1])
        if node.function == "label_replace" and len(node.args) > 4:
            self._pattern(node.args[4])
        return signature.result

    def _miscounted(self, node: ast.Call) -> None:
        """An aggregation of too few or too many arguments."""
        wanted = 2 if node.function in PARAMETRIC else 1
        message = f"{node.function} takes {_arguments(wanted)}, not {len(node.args)}"
        help_ = self.proposals.of_call(node, node.function) or _usage(node.function)
        self.report("HW104", message, node.name_span, help_)

    def _unknown(self, node: ast.Call) -> None:
        name, args = node.function, [self.proposals.written(arg) for arg in node.args]
        if name.startswith("histogram_") or name == "info":
            what = "the function info" if name == "info" else f"{name} works on histograms, which are"
            help_ = misnomers.of_histogram(name, ", ".join(args))
            self.report("HW109", f"{what} {'is ' if name == 'info' else ''}not supported", node.name_span, help_)
            return
        ranged = any(isinstance(ast.unwrapped(arg), ast.MatrixSelector | ast.Subquery) for arg in node.args)
        near = likely_typo(name, FUNCTIONS, 0.75)
        help_ = (
            self.proposals.of_call(node, misnomers.AGGREGATIONS.get(name, ""))
            or misnomers.of_function(name, args, over_time=ranged, place=self.proposals.place(node))
            or (f'did you mean "{near}"?' if near else "")
        )
        self.report("HW103", f'no function is called "{name}"', node.name_span, help_)

    def _count(self, node: ast.Call, signature: Signature) -> None:
        given, least, most = len(node.args), signature.least, signature.most
        if given < least:
            takes, span = "at least ", node.name_span
            wanted = _arguments(least)
        elif most is not None and given > most:
            takes, span = "at most ", (node.args[most].span[0], node.args[-1].span[1])
            wanted = _arguments(most)
        else:
            return
        message = f"{node.function} takes {'' if most == least else takes}{wanted}, not {given}"
        self.report("HW104", message, span, _usage(node.function))


def _usage(name: str) -> str:
    """How a function or an aggregation is written, with the names of its arguments."""
    from healthwatch.promql.meaning import MEANINGS  # whose examples are parsed, checks and all

    return MEANINGS[name].usage


def _arguments(count: int) -> str:
    return "no arguments" if count == 0 else "1 argument" if count == 1 else f"{count} arguments"


def _go_quote(text: str) -> str:
    """As Go's %q: bytes that are not UTF-8 in hexadecimal."""
    return '"' + "".join(f"\\x{ord(c) - 0xDC00:02x}" if "\udc80" <= c <= "\udcff" else c for c in text) + '"'
