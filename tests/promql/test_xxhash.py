from __future__ import annotations

import pytest

from healthwatch.promql.xxhash import label_hash, xxhash64


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_published_vectors(data: bytes, digest: int) -> None:
    assert xxhash64(data) == digest


def test_label_sets_are_told_apart() -> None:
    sets = [(("a", "bc"),), (("ab", "c"),), (("a", "b"), ("c", "")), (("a", "x" * 300),), (("a", "x" * 301),), ()]
    assert len({label_hash(labels) for labels in sets}) == len(sets)
