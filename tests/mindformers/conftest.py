"""The real trainer on a CPU, in a virtual environment of its own (`make mindformers`): not collected elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

INSTALLED = find_spec("mindformers")

if INSTALLED is None or INSTALLED.origin is None:  # this folder itself would pass for a namespace of that name
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def trainer_ready(
    shared: Path, tmp_path_factory: pytest.TempPathFactory, one_thread_dispatches: None
) -> Iterator[Path]:
    """Shims in place, logs and whatever the trainer drops in a scratch folder; returns that folder.

    On one core, before the runtime's threads are there: on two they wait for each other by spinning, and take half of
    the processor time there is.
    """
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    scratch = tmp_path_factory.mktemp("trainer")
    os.environ["LOG_MF_PATH"] = str(scratch / "log")
    sys.path.insert(0, str(shared / "mindformers-cpu"))
    before = Path.cwd()
    os.chdir(scratch)
    import tiny  # noqa: F401 - brings the shims in before anything imports mindformers

    yield scratch
    os.chdir(before)


@pytest.fixture(scope="session")
def dense(trainer_ready: Path):
    from trainings import run_dense

    return run_dense(trainer_ready)


@pytest.fixture(scope="session")
def moe(trainer_ready: Path):
    from trainings import run_moe

    return run_moe(trainer_ready)
