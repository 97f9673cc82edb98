"""One rule under the eye of a check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from healthwatch.diagnostics import Severity
from healthwatch.promql import ast
from healthwatch.rulefile.draft import Draft
from healthwatch.stream.catalogue import Metric


@dataclass(frozen=True, slots=True)
class Facts:
    """What the training's config says of the model: experts a token goes to, and experts of a layer."""

    top_k: int | None = None
    experts: int | None = None


UNKNOWN = Facts()


@dataclass(frozen=True, slots=True)
class Subject:
    """`metrics` are those whose labels are known, `known` all; `facts` hold for the run that the rule is to watch."""

    draft: Draft
    metrics: Mapping[str, Metric]
    known: Mapping[str, Metric]
    facts: Facts = UNKNOWN

    def trees(self) -> Iterator[tuple[str, ast.Expr]]:
        """Every expression of the rule with the key that it stands under; `when` gives `expr` and `detail`."""
        for key, expression in self.draft.expressions.items():
            yield key, expression.tree

    def written(self, key: str) -> bool:
        """Whether the expression is written as PromQL, so that places in it are places in the file."""
        return key in self.draft.data

    def report(
        self, code: str, message: str, key: str, span: ast.Span, mend: str, severity: Severity = "error"
    ) -> None:
        """A problem at `span` of an expression; where conditions stand for it at the key `when`."""
        if self.written(key):
            self.draft.report_text(code, message, (key,), span, mend, severity)
        elif key == "expr":
            self.draft.report(code, message, "when", at_key=True, severity=severity, help=mend)


def selectors(tree: ast.Expr) -> list[ast.VectorSelector]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.VectorSelector)]
