"""A format of somebody else's, as the page on readers shows it."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from healthwatch.readers import Format, Passed, Steps, open_log
from healthwatch.readers import format as formats_module


class MyLog:
    def __init__(self, table, options):
        self.passed = Passed()
        self.steps = Steps(table)

    def feed(self, line):
        found = re.match(r"mine (\d+) (\S+)", line)
        if found and self.steps.enter(int(found[1])):
            self.steps.add("loss", (float(found[2]),))
        return self.steps.take()

    def finish(self):
        return self.steps.finish()


FORMAT = Format("mine", "logs of my trainer", recognises=lambda head: head.startswith("mine"), open=MyLog)


@pytest.fixture
def installed(monkeypatch):
    real = formats_module.entry_points
    mine = EntryPoint("mine", f"{__name__}:FORMAT", formats_module.GROUP)
    monkeypatch.setattr(formats_module, "entry_points", lambda group: [*real(group=group), mine])
    formats_module.formats.cache_clear()
    yield
    formats_module.formats.cache_clear()


def test_a_format_is_found_by_its_entry_point_and_recognises_its_log(installed, tmp_path: Path):
    log = tmp_path / "log.txt"
    log.write_text("mine 1 2.5\nmine 2 nan\n")
    opened = open_log(log)
    assert opened.format.name == "mine"
    frames = list(opened.frames())
    assert (frames[0].step, frames[0].columns[0].values[0]) == (1, 2.5)
    assert len(frames) == 2
    assert open_log(log, "mine").format.name == "mine"


def test_the_page_shows_the_same(installed):
    page = (Path(__file__).resolve().parents[2] / "docs" / "readers.md").read_text(encoding="utf-8")
    assert '[project.entry-points."healthwatch.readers"]' in page
    for line in ("self.passed = Passed()", "self.steps = Steps(table)", "return self.steps.take()"):
        assert line in page
