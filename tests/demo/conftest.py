"""One run of the demo and one healthy training, each made once, for all tests that look at them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from cores import one_core
from demo_runs import Finished, finish, start


@dataclass(frozen=True)
class Trainings:
    demo: Finished
    healthy: Finished


@pytest.fixture(scope="session")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> Trainings:
    """Both at once, each on a core of its own."""
    for package in ("mindspore", "aiosmtpd"):
        pytest.importorskip(package, reason=f"the demo needs {package}")
    folders = tmp_path_factory.mktemp("demo"), tmp_path_factory.mktemp("healthy")
    nowhere = {"DEMO_HTTP_URL": "json://127.0.0.1:9/none", "DEMO_MAIL_URL": "json://127.0.0.1:9/none"}
    with one_core(0):
        demo = start(folders[0], "run")
    with one_core(1):
        healthy = start(folders[1], "train", "--no-faults", **nowhere)
    try:
        return Trainings(finish(demo, folders[0]), finish(healthy, folders[1]))
    finally:
        healthy.kill()


@pytest.fixture(scope="session")
def demo(trainings: Trainings) -> Finished:
    return trainings.demo


@pytest.fixture(scope="session")
def healthy(trainings: Trainings) -> Finished:
    return trainings.healthy


@pytest.fixture(scope="session")
def samples(demo: Finished) -> Any:
    """The recorded samples, as the naive evaluator reads them."""
    from naive_reading import read

    return read(demo.recording)
