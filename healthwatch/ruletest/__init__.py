"""Rule tests: Prometheus' unit-test format on the step axis, run by the engine that judges a training."""

from __future__ import annotations

from healthwatch.ruletest.files import Report, run_files

__all__ = ["Report", "run_files"]
