"""Messages that are larger than anybody takes, and pictures, through the whole of healthwatch."""

from __future__ import annotations

import base64
import struct
import warnings

import numpy as np
import pytest
from killable import write_config
from receiving import wait_for

import healthwatch
from healthwatch import pictures
from healthwatch.recording import Run

PNG = b"\x89PNG\r\n\x1a\n"


def test_five_thousand_series_make_one_message(inbox, quick, tmp_path):
    session = healthwatch.load(write_config(tmp_path, [inbox.url])).attach()
    labels = [{"param": f"decoder.layers.{number % 80}.梯度.w{number}"} for number in range(5000)]
    values = np.linspace(1.0, 2.0, 5000)
    for step in range(1, 20):
        session.log_values("norm", values * (1 if step < 15 else 12), labels)
        session.step(2.0)
    session.close()
    jumps = [message for message in inbox.taken if "NormJump" in message["title"]]
    assert [message["title"] for message in jumps][:1] == ["WARNING: NormJump, run killed"]
    assert "Worst 10 of 5000 series" in jumps[0]["message"]
    assert "… 4990 more" in jumps[0]["message"]
    assert 'First to fire: `{param="decoder.layers.79.' in jumps[0]["message"]
    with Run.open(tmp_path / "output") as run:
        [incident] = [one for one in run.incidents() if one.rule == "NormJump"]
        fired = [found for found in run.transitions() if found.rule == "NormJump" and found.reason == "fired"]
    assert (incident.joined, len(fired)) == (5000, 5000), "the limit cuts the message, not the state"


def test_64_kilobytes_of_summary(inbox, quick, tmp_path):
    config = write_config(tmp_path, [inbox.url])
    rules = (tmp_path / "rules.yaml").read_text()
    (tmp_path / "rules.yaml").write_text(rules.replace("the loss is", "梯度范数 🔥 " * 8000 + "the loss is"))
    with healthwatch.load(config) as session:
        session.log(norm=1.0)
        session.step(9.0)
    [message] = inbox.taken
    assert message["title"] == "CRITICAL: LossHigh, run killed"
    assert len(message["message"].encode()) > 3000
    assert "cut here" in message["message"] or "the loss is 9" in message["message"]


@pytest.mark.long
@pytest.mark.extras
def test_a_picture_is_attached(inbox, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the plots extra")
    session = healthwatch.load(write_config(tmp_path, [inbox.url])).attach()
    for step in range(1, 40):
        session.log(norm=1.0 + 0.1 * (step % 3))
        session.step(9.0 if step == 39 else 2.0 + 0.1 * (step % 3))
    wait_for(lambda: session._pipeline.delivery.state()[0].accepted, 60)
    session.close()
    [attachment] = inbox.taken[0]["attachments"]
    assert attachment["filename"] == "LossHigh-39.png"
    picture = base64.b64decode(attachment["base64"])
    assert picture.startswith(PNG)
    width, height = struct.unpack(">II", picture[16:24])
    assert (width, height) == (880, 396)


@pytest.mark.extras
def test_a_picture_writes_what_its_fonts_have():
    """Chinese where a font of the machine has it, else an ellipsis: never a row of empty boxes."""
    pytest.importorskip("matplotlib", reason="needs the plots extra")
    series = {"name": '{param="梯度.w"}', "steps": [1, 2, 3], "values": [1.0, "NaN", 9.0], "threshold": 5.0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns of every glyph that it lacks
        assert pictures.draw({"title": "LossHigh, run 预训练 🚀", "fired": 3, "series": [series]}).startswith(PNG)
