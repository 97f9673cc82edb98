"""Which labels a result can carry: what is said never to be there is never there."""

from __future__ import annotations

import pytest

from healthwatch.promql.parse import parse
from healthwatch.rulefile.resultlabels import result_labels
from healthwatch.stream.catalogue import PLACEMENT, catalogue

TPE = {"block", "layer", "mtp_idx", "expert", *PLACEMENT}


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("tokens_per_expert", {*TPE, "__name__"}),
        ('tokens_per_expert{own="x"} > 3', {*TPE, "__name__", "own"}),
        ("max without (expert) (tokens_per_expert)", TPE - {"expert"}),
        ("max by (layer, other) (tokens_per_expert)", {"layer"}),
        ("sum by (layer) (unknown_metric)", {"layer"}),
        ("sum(unknown_metric)", set()),
        ("sum without (x) (unknown_metric)", None),
        ("topk by (layer) (1, loss)", {"split", *PLACEMENT, "__name__"}),
        ("unknown_metric", None),
        ('{__name__=~".*loss"}', None),
        ("avg_over_time(loss[5]) * 2 > 3", {"split", *PLACEMENT, "__name__"}),
        ("loss and unknown_metric", {"split", *PLACEMENT, "__name__"}),
        ("loss or unknown_metric", None),
        ("router_topk / on (layer) sum by (layer) (tokens_per_expert)", {"layer"}),
        ("tokens_per_expert / ignoring (expert) group_left () router_topk", {*TPE, "__name__"}),
        ("sum(loss) * on () group_right (split) local_loss", {*PLACEMENT, "__name__", "split"}),
        ('label_replace(loss, "a", "$1", "split", "(.*)")', {"split", "a", *PLACEMENT, "__name__"}),
        ('label_join(sum by (layer) (router_topk), ("a"), "-", "layer")', {"layer", "a"}),
        ('label_replace(unknown_metric, "a", "$1", "split", "(.*)")', None),
        ("vector(1)", set()),
        ("(time() - 3) > bool 2", set()),
        ("-(loss)", {"split", *PLACEMENT, "__name__"}),
    ],
)
def test_labels(text: str, labels: set[str] | None) -> None:
    expression = parse(text).expression
    assert expression is not None
    assert result_labels(expression.tree, catalogue()) == labels
