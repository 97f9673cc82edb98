"""Two ranks under `msrun`: the norm of the gradient that they agree on, and one of them that stops."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from ranks import two_ranks

from healthwatch.recording import Run
from healthwatch.stream import Frame

pytest.importorskip("mindspore", reason="needs the mindspore extra")
pytestmark = [pytest.mark.mindspore, pytest.mark.long]

PROGRAM = Path(__file__).with_name("ranks_training.py")
LEAP, LEFT_OUT = 8, (4, 5)
RULES = """
groups:
  - name: test
    rules:
      - alert: LossLeaps
        expr: loss > 50
        labels: {severity: critical}
"""
CONFIG = """
healthwatch:
  run: ranks
  output: OUTPUT
  rules: [rules.yaml]
  budget: 100%
  escalation: {critical: [{stop: true}]}
"""


@dataclass(frozen=True)
class Job:
    folder: Path
    code: int

    def run(self, rank: int) -> Run:
        return Run.open(self.folder / "out" / f"rank_{rank}.sqlite")

    def frames(self, rank: int) -> dict[int, Frame]:
        with self.run(rank) as run:
            return {frame.step: frame for frame in run.frames()}

    def gradients(self, rank: int, step: int) -> list[np.ndarray]:
        with np.load(self.folder / f"{rank}-{step}.npz") as saved:
            return [saved[name].astype(np.float64) for name in saved.files]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "rules.yaml").write_text(RULES)
    config = folder / "train.yaml"
    config.write_text(CONFIG.replace("OUTPUT", str(folder / "out")))
    return Job(folder, two_ranks(folder, PROGRAM, config, folder).returncode)


def norms(frame: Frame, metric: str) -> np.ndarray | None:
    return next((column.values for column in frame.columns if column.series.metric == metric), None)


def plain(gradients: list[np.ndarray]) -> np.ndarray:
    return np.array([np.linalg.norm(each) for each in gradients])


@pytest.mark.row(29)
@pytest.mark.parametrize("rank", [0, 1])
def test_row_029_the_global_norm_is_that_of_the_gradient_reduced_over_ranks(job: Job, rank: int) -> None:
    for step, frame in job.frames(rank).items():
        both = [job.gradients(each, step) for each in (0, 1)]
        mean = [(a + b) / 2 for a, b in zip(*both, strict=True)]
        assert norms(frame, "device_norm_global") == pytest.approx(plain(mean), rel=1e-5), step
        assert norms(frame, "device_norm") == pytest.approx(plain(both[rank]), rel=1e-5), step
        assert norms(frame, "grad_norm") == pytest.approx(np.linalg.norm(plain(mean)), rel=1e-5), step


def test_a_rank_that_does_not_call_us_holds_nobody_up(job: Job) -> None:
    assert set(job.frames(1)) == set(range(1, LEAP + 1))
    assert set(job.frames(0)) & set(range(1, LEAP)) == set(range(1, LEAP)) - set(LEFT_OUT)


def test_a_rank_that_stops_ends_the_job_and_every_finished_step_is_kept(job: Job) -> None:
    """It ends in time, with an error for the launcher: rank 0 would wait for it in its next reduction, for ever."""
    assert job.code != 0
    with job.run(1) as run:
        assert run.attempts()[-1].reason == "stopped"
    assert max(job.frames(0)) in (LEAP - 1, LEAP)
    log = "".join(each.read_text(errors="replace") for each in (job.folder / "log").glob("worker_1*"))
    assert "healthwatch stopped the training: LossLeaps" in log
