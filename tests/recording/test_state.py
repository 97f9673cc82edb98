"""Where alerting stands is written at every step, of thousands of alerts as well: what decides comes back exactly."""

from __future__ import annotations

import numpy as np
import pytest

from healthwatch.alerting.rows import PHASE, VALUE
from healthwatch.engine import Engine
from healthwatch.recording import Snapshots, revive, rows_of
from healthwatch.recording.state import EVERY, MANY
from healthwatch.rulefile import load_rules
from healthwatch.stream import Frame, SeriesTable

RULES = """
groups:
  - name: g
    rules:
      - {alert: Recs, expr: x > 1, for_records: 90, labels: {severity: info}}
      - {alert: Holds, expr: x > 1, keep_firing_for: 90, labels: {severity: info}}
"""


@pytest.mark.parametrize("count", [MANY - 1, MANY + 1])
def test_every_column_that_decides_is_as_of_the_last_step(tmp_path, count):
    """Breaches are counted, alerts of a mask are clear for a while or have no data, and one has begun late."""
    (tmp_path / "rules.yaml").write_text(RULES, encoding="utf-8")
    rules = load_rules([tmp_path / "rules.yaml"]).rules
    table, snapshots = SeriesTable(), Snapshots()
    engine = Engine(rules, table)
    series = table.register("x", [{"i": str(number)} for number in range(count)])
    for step in range(1, 3 * EVERY):
        values = np.full(count, 2.0 + step)
        values[::3] = np.nan if step > 12 else 2.0
        values[1::3] = 0.0 if step % 5 == 4 else 2.0
        values[5] = 0.0 if step < 30 else 2.0
        frame = Frame(step, 1, 10.0 * step)
        frame.add(series, values)
        frame.close()
        engine.step(frame)
        written = snapshots.of(engine)
        again = Engine(rules, table)
        revive(again, written)
        for rule in ("Recs", "Holds"):
            labels, alerts = engine.book.page(rule).ledger.live()
            labels_then, alerts_then = again.book.page(rule).ledger.live()
            assert labels_then == labels
            exact = [column for column in range(alerts.shape[1]) if count < MANY or column != VALUE]
            np.testing.assert_array_equal(alerts_then[:, exact], alerts[:, exact], err_msg=f"{rule} at step {step}")
    assert {row[PHASE] for row in alerts} == {2.0}
    assert rows_of(engine).keys() == {key for key in written if not key.startswith("moved:")}


def test_what_is_written_between_is_small(tmp_path):
    """Of ten thousand that began together and go on together: a few numbers."""
    (tmp_path / "rules.yaml").write_text(RULES, encoding="utf-8")
    table, snapshots = SeriesTable(), Snapshots()
    engine = Engine(load_rules([tmp_path / "rules.yaml"]).rules, table)
    series = table.register("x", [{"i": str(number)} for number in range(10_000)])
    before: dict[str, bytes] = {}
    for step in range(1, EVERY):
        frame = Frame(step, 1, 10.0 * step)
        frame.add(series, 2.0 + np.arange(10_000) * step)
        frame.close()
        engine.step(frame)
        written = snapshots.of(engine)
        new = {key: value for key, value in written.items() if before.get(key) is not value}
        before = written
        if step > 1:
            assert sum(map(len, new.values())) < 10_000, new.keys()
