"""Reads the samples of a recorded run with sqlite3 and numpy alone, as docs/recording.md describes the file."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
from naive_rules import Samples


def query(path: Path, statement: str) -> list[tuple]:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(statement).fetchall()


def times(path: Path) -> dict[int, float]:
    """The unix time of every step."""
    return dict(query(path, "SELECT step, time FROM frames"))


def read(path: Path) -> Samples:
    names = {
        number: (metric, [dict(pairs) for pairs in json.loads(labels)])
        for number, metric, labels in query(path, "SELECT id, metric, labels FROM series")
    }
    samples = Samples()
    blobs = query(path, "SELECT tick, series, dtype, data FROM samples ORDER BY tick, rowid")
    for tick, series, dtype, data in blobs:
        metric, labels = names[series]
        for one, value in zip(labels, np.frombuffer(data, dtype), strict=True):
            samples.add(metric, one, tick, value)
    return samples
