"""Rules and receivers that change on disk while a training runs."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import healthwatch
from healthwatch.cli.replay import listen
from healthwatch.config import Config, load_all
from healthwatch.diagnostics import Invalid
from healthwatch.recording import Run, describe
from healthwatch.replay import load_replay
from healthwatch.session import Guard, Session
from healthwatch.session.reload import Reloader

HEAD = "groups:\n  - name: g\n    rules:\n"


def rule(name: str, expr: str, **keys: object) -> str:
    more = "".join(f"        {key}: {value}\n" for key, value in keys.items())
    return (
        f"      - alert: {name}\n        expr: {expr}\n        labels: {{severity: critical}}\n"
        f'        annotations: {{action: look, summary: "{name} {{{{ $value }}}}"}}\n{more}'
    )


HIGH = rule("High", "loss > 5", for_records=3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rules.yaml").write_text(HEAD + HIGH, encoding="utf-8")
    write_config(tmp_path)
    return tmp_path


def write_config(folder: Path, **section: object) -> None:
    known = {
        "run": "r",
        "output": str(folder / "output"),
        "rules": ["rules.yaml"],
        "escalation": {"critical": [{"log": "error"}]},
    }
    text = json.dumps({"healthwatch": {**known, **section}})
    (folder / "train.yaml").write_text(text, encoding="utf-8")


def reloader(session: Session) -> Reloader:
    assert session._pipeline is not None
    return session._pipeline.reloader


@pytest.fixture
def start(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """A session whose watchman does not look by himself: the tests say when."""
    monkeypatch.setattr("healthwatch.session.watchman.EVERY", 3600.0)
    opened: list[Session] = []

    def start() -> Session:
        opened.append(healthwatch.load(folder / "train.yaml").attach())
        return opened[-1]

    yield start
    for session in opened:
        session.close()


def change(path: Path, text: str) -> None:
    """As an editor saves: a new time, whatever the clock's grain."""
    path.write_text(text, encoding="utf-8")
    later = time.time_ns() + 10_000_000 * (1 + path.stat().st_size % 97)
    os.utime(path, ns=(later, later))


def seen(session: Session) -> None:
    for _ in range(2):  # the first look sees a change, the second that it stands
        reloader(session).look()


def fired(folder: Path) -> list[tuple[int, str, str]]:
    with Run.open(folder / "output") as run:
        return [(each.now.step, each.rule, each.reason) for each in run.transitions()]


Start = Callable[[], Session]


def test_a_new_rule_is_in_force_from_the_next_step(folder: Path, start: Start) -> None:
    session = start()
    session.step(9.0)
    change(folder / "rules.yaml", HEAD + HIGH + rule("Low", "loss < 1"))
    session.step(0.5)
    reloader(session).look()
    session.step(0.5)
    reloader(session).look()
    session.step(0.5)
    session.close()
    assert (4, "Low", "fired") in fired(folder)
    assert [each for each in fired(folder) if each[1] == "Low"] == [(4, "Low", "fired")]


def test_unchanged_rules_keep_what_is_pending_and_firing(folder: Path, start: Start) -> None:
    session = start()
    for _ in range(2):
        session.step(9.0)
    change(folder / "rules.yaml", HEAD + rule("Other", "loss < 1") + HIGH)
    seen(session)
    session.step(9.0)
    change(folder / "rules.yaml", HEAD + HIGH + rule("Third", "loss < 1"))
    seen(session)
    session.step(9.0)
    session.step(1.0)
    session.close()
    assert fired(folder) == [(1, "High", "breach"), (3, "High", "fired"), (5, "High", "resolved")]


def test_a_window_is_kept_as_well(folder: Path, start: Start) -> None:
    jump = rule("Jump", "spike_ratio(loss[20], 3) > 4")
    change(folder / "rules.yaml", HEAD + jump)
    session = start()
    for _ in range(10):
        session.step(1.0)
    change(folder / "rules.yaml", HEAD + jump + HIGH)
    seen(session)
    session.step(6.0)
    session.close()
    assert (11, "Jump", "fired") in fired(folder)


def test_a_bad_version_is_refused_and_told_once(folder: Path, start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "healthwatch")
    session = start()
    session.step(9.0)
    change(folder / "rules.yaml", HEAD + HIGH.replace("loss > 5", "los > 5"))
    for _ in range(5):
        seen(session)
        session.step(9.0)
    told = [record for record in caplog.records if "version of the rules is refused" in record.message]
    assert len(told) == 1
    assert 'error[HW012]: no metric is called "los"' in told[0].message
    change(folder / "rules.yaml", HEAD + HIGH + rule("Low", "loss < 1"))
    seen(session)
    session.step(0.5)
    session.close()
    assert fired(folder) == [
        (1, "High", "breach"), (3, "High", "fired"), (7, "High", "resolved"), (7, "Low", "fired"),
    ]  # fmt: skip


def test_half_a_file_is_not_read(folder: Path, start: Start, caplog: pytest.LogCaptureFixture) -> None:
    session = start()
    session.step(1.0)
    for text in (HEAD, HEAD + HIGH[:40], HEAD + HIGH + rule("Low", "loss < 1")):
        change(folder / "rules.yaml", text)
        reloader(session).look()
    reloader(session).look()
    session.step(0.5)
    session.close()
    assert "is refused" not in caplog.text
    assert fired(folder) == [(2, "Low", "fired")]


def test_the_same_bytes_again_are_nothing_new(folder: Path, start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "healthwatch")
    session = start()
    for _ in range(3):
        change(folder / "rules.yaml", HEAD + HIGH)
        seen(session)
        session.step(1.0)
    assert "reloaded" not in caplog.text


def test_the_alerts_of_a_rule_that_is_gone_end_and_are_told(folder: Path, start: Start, inbox) -> None:
    ladder = {"critical": [{"notify": "oncall"}]}
    write_config(folder, escalation=ladder, receivers={"oncall": {"urls": [inbox.url]}})
    session = start()
    for _ in range(3):
        session.step(9.0)
    change(folder / "rules.yaml", HEAD + rule("Other", "loss > 100"))
    seen(session)
    session.step(9.0)
    session.close()
    assert fired(folder)[-1] == (3, "High", "expired")
    assert len(inbox.titles) == 2
    with Run.open(folder / "output") as run:
        (incident,) = run.incidents()
    assert incident.ending == "expired"


def test_receivers_change(folder: Path, start: Start, inbox) -> None:
    """The message goes to where the receiver is now; a receiver that was not there at the start works."""
    session = start()
    for _ in range(2):
        session.step(9.0)
    ladder = {"critical": [{"log": "error"}, {"notify": "oncall"}]}
    write_config(folder, escalation=ladder, receivers={"oncall": {"urls": ["json://127.0.0.1:9/"]}})
    seen(session)
    session.step(9.0)
    write_config(folder, escalation=ladder, receivers={"oncall": {"urls": [inbox.url]}})
    seen(session)
    session.step(9.0)
    session.close()
    assert len(inbox.titles) == 1
    assert "High" in inbox.titles[0]


def test_an_override_changes_a_parameter(folder: Path, start: Start) -> None:
    change(folder / "rules.yaml", HEAD + rule("High", "loss > $k", params="{k: 5}"))
    session = start()
    session.step(4.0)
    write_config(folder, override={"High": {"params": {"k": 3}}})
    seen(session)
    session.step(4.0)
    session.close()
    assert fired(folder) == [(2, "High", "fired")]


def test_what_waits_for_the_next_start_is_said(folder: Path, start: Start, caplog: pytest.LogCaptureFixture) -> None:
    session = start()
    session.step(1.0)
    write_config(folder, output=str(folder / "elsewhere"), capture={"max_captures": 9})
    seen(session)
    session.step(1.0)
    assert "output, capture of the config: changes take effect at the next start" in caplog.text
    assert session._pipeline is not None
    assert session._pipeline.config.output == folder / "output"


def test_a_rule_file_that_a_refused_config_names_is_waited_for(folder: Path, start: Start) -> None:
    session = start()
    write_config(folder, rules=["rules.yaml", "new.yaml"])
    seen(session)
    session.step(0.5)
    change(folder / "new.yaml", HEAD + rule("Low", "loss < 1"))
    seen(session)
    session.step(0.5)
    session.close()
    assert fired(folder) == [(2, "Low", "fired")]


def test_a_rule_file_that_vanishes_changes_nothing(folder: Path, start: Start) -> None:
    session = start()
    session.step(9.0)
    (folder / "rules.yaml").unlink()
    seen(session)
    for _ in range(2):
        session.step(9.0)
    session.close()
    assert (3, "High", "fired") in fired(folder)


def test_a_look_without_a_change_reads_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load_all(folder / "train.yaml").config
    assert config is not None
    watched = Reloader(config, Guard())
    watched.begin()
    monkeypatch.setattr(Path, "read_bytes", lambda _: pytest.fail("read"))
    for _ in range(3):
        watched.look()


@pytest.mark.long
def test_the_watchman_looks_by_himself(folder: Path) -> None:
    with healthwatch.load(folder / "train.yaml").attach() as session:
        session.step(1.0)
        change(folder / "rules.yaml", HEAD + HIGH + rule("Low", "loss < 1"))
        deadline = time.monotonic() + 60
        while session._pipeline is not None and "Low" not in session._pipeline.rules and time.monotonic() < deadline:
            time.sleep(0.1)
            session.step(0.5)
    assert [each[1:] for each in fired(folder)] == [("Low", "fired")]


def said(folder: Path) -> tuple[list[str], list[str]]:
    """What the run said, and what a replay of its samples says."""
    with Run.open(folder / "output") as run:
        live = [repr(each) for each in run.transitions()]
    return live, [repr(each) for outcome in load_replay(folder / "output").outcomes() for each in outcome.transitions]


def test_a_replay_changes_the_rules_where_the_run_did(folder: Path, start: Start) -> None:
    """A rule that comes, one that changes, one that goes while it fires; then an attempt that begins with others."""
    change(folder / "rules.yaml", HEAD + HIGH + rule("Gone", "loss > 2"))
    session = start()
    for loss in (1.0, 9.0, 9.0):
        session.step(loss)
    change(folder / "rules.yaml", HEAD + HIGH.replace("loss > 5", "loss > 7") + rule("Low", "loss < 4"))
    seen(session)
    for loss in (6.0, 9.0, 9.0, 3.0):
        session.step(loss)
    change(folder / "rules.yaml", HEAD + rule("Low", "loss < 4") + rule("Jump", "spike_ratio(loss[20], 3) > 1.5"))
    seen(session)
    session.step(30.0)
    session.close()
    change(folder / "rules.yaml", HEAD + rule("Jump", "spike_ratio(loss[20], 3) > 2") + rule("New", "loss > 20"))
    session = healthwatch.load(folder / "train.yaml").attach(first_step=7)
    for loss in (3.0, 30.0, 3.0):
        session.step(loss)
    session.close()
    live, again = said(folder)
    assert live == again
    assert fired(folder) == [
        (2, "High", "breach"), (2, "Gone", "fired"), (3, "Gone", "expired"),
        (4, "High", "clear"), (5, "High", "breach"), (7, "High", "clear"), (7, "Low", "fired"),
        (8, "Low", "resolved"), (8, "Jump", "fired"),
        (7, "Jump", "resolved"), (8, "Jump", "fired"), (8, "New", "fired"),
        (9, "Jump", "resolved"), (9, "New", "resolved"),
    ]  # fmt: skip
    with Run.open(folder / "output") as run:
        assert [(each.attempt, each.step) for each in run.reloads()] == [(1, 4), (1, 8)]


def test_a_reload_before_the_first_step_is_no_step_of_a_replay(folder: Path, start: Start) -> None:
    session = start()
    change(folder / "rules.yaml", HEAD + rule("Low", "loss < 1"))
    seen(session)
    for loss in (0.5, 9.0):
        session.step(loss)
    session.close()
    live, again = said(folder)
    assert live == again
    assert fired(folder) == [(1, "Low", "fired"), (2, "Low", "resolved")]
    assert listen(load_replay(folder / "output")).steps == 2


def test_a_replay_finds_the_step_of_a_reload_although_the_clock_was_set_back(
    folder: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    session = start()
    for loss in (0.5, 9.0):
        now += 1.0
        session.step(loss)
    now -= 600.0
    for text in (HIGH + rule("Low", "loss < 1"), HIGH + rule("Lower", "loss < 1")):
        change(folder / "rules.yaml", HEAD + text)
        seen(session)
        now -= 60.0
        session.step(0.5)
    session.close()
    live, again = said(folder)
    assert live == again
    assert fired(folder) == [
        (2, "High", "breach"), (3, "High", "clear"), (3, "Low", "fired"), (3, "Low", "expired"), (4, "Lower", "fired"),
    ]  # fmt: skip


def test_an_attempt_after_a_reload_fills_the_windows_of_the_rules_that_came(folder: Path, start: Start) -> None:
    """Live it reads them from the recording, which the step of the reload did not: a replay does both."""
    shallow, deep = rule("High", "avg_over_time(loss[3]) > 5"), rule("Deep", "count_over_time(loss[60]) >= 60")
    change(folder / "rules.yaml", HEAD + shallow)
    session = start()
    for _ in range(70):
        session.step(1.0)
    change(folder / "rules.yaml", HEAD + shallow + deep)
    seen(session)
    session.step(1.0)
    session.close()
    session = healthwatch.load(folder / "train.yaml").attach(first_step=72)
    session.step(1.0)
    session.close()
    live, again = said(folder)
    assert live == again
    assert fired(folder) == [(72, "Deep", "fired")]


def test_a_parameter_that_came_with_a_reload_can_be_changed_in_a_replay(folder: Path, start: Start) -> None:
    session = start()
    session.step(9.0)
    change(folder / "rules.yaml", HEAD + rule("High", "loss > $k", params="{k: 5}"))
    seen(session)
    session.step(4.0)
    session.close()
    outcomes = load_replay(folder / "output", params={"High": {"k": 3.0}}).outcomes()
    assert [(each.now.step, each.reason) for outcome in outcomes for each in outcome.transitions] == [
        (1, "breach"),
        (2, "fired"),
    ]
    with pytest.raises(Invalid, match='rule "High" has no parameter "kk"'):
        load_replay(folder / "output", params={"High": {"kk": 3.0}})


def test_files_that_change_while_they_are_read_are_read_again(
    folder: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in force and what the recording says of it are never of two versions."""
    session = start()
    session.step(1.0)
    change(folder / "rules.yaml", HEAD + rule("High", "loss > 6"))

    def described(config: Config) -> dict[str, object]:
        monkeypatch.setattr("healthwatch.session.reload.describe", describe)
        change(folder / "rules.yaml", HEAD + rule("High", "loss > 7"))
        return describe(config)

    monkeypatch.setattr("healthwatch.session.reload.describe", described)
    seen(session)
    session.step(6.5)
    seen(session)
    session.step(7.5)
    session.close()
    live, again = said(folder)
    assert live == again
    assert fired(folder) == [(2, "High", "breach"), (3, "High", "fired")]
