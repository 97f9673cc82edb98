"""The conditions that ship with healthwatch, as their entry point names them."""

from __future__ import annotations

from healthwatch.rulefile.conditions import absence, baseline, experts, point, ranks, windows

CONDITIONS = (
    *point.CONDITIONS,
    *baseline.CONDITIONS,
    *windows.CONDITIONS,
    *experts.CONDITIONS,
    *ranks.CONDITIONS,
    *absence.CONDITIONS,
)
