"""Two ways to evaluate the same expression, held together."""

from __future__ import annotations

from healthwatch.promql import Query


def same(plain: Query, quick: Query, tick: int) -> None:
    """The same kept and known, and the same values of what is kept, bit for bit."""
    left, right = plain.evaluate(tick), quick.evaluate(tick)
    assert list(left.labels) == list(right.labels)
    assert left.kept.tolist() == right.kept.tolist(), f"kept at {tick}"
    assert left.known.tolist() == right.known.tolist(), f"known at {tick}"
    assert left.values[left.kept].tobytes() == right.values[left.kept].tobytes(), f"values at {tick}"
    assert right.places is None or right.places.tolist() == left.kept.nonzero()[0].tolist(), f"places at {tick}"
