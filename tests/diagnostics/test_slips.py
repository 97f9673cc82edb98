"""A single slip of the fingers is a misspelt name, however short the name is."""

from __future__ import annotations

from pathlib import Path

import pytest

from healthwatch.diagnostics import likely_typo
from healthwatch.rulefile import load_rules

KNOWN = ("loss", "grad_norm", "lr", "local_norm")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("loos", "loss"),
        ("los", "loss"),
        ("lsos", "loss"),
        ("losss", "loss"),
        ("grad_nrom", "grad_norm"),
        ("lt", None),
        ("queue", None),
    ],
)
def test_slips(written: str, meant: str | None) -> None:
    assert likely_typo(written, KNOWN) == meant


def test_an_undefined_parameter_hides_no_unknown_metric(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text("groups: [{name: g, rules: [{alert: A, expr: 'spike_ratio(local_nrom[50]) > $ratio'}]}]\n", "utf-8")
    found = {each.code: each.help for each in load_rules([path]).diagnostics if each.severity == "error"}
    assert found["HW012"] == 'did you mean "local_norm"?'
    assert "HW107" in found
