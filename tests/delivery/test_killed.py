"""Runs killed with SIGKILL at a random moment: everything that fired is told, and nothing more than twice."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections import Counter
from pathlib import Path

import apprise
import pytest
from killable import LAST, train, write_config

from healthwatch.recording import Run

RUNS = 50
PAUSE = 0.004  # seconds between two steps

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(apprise.__version__.startswith("1."), reason="bodies are compared as Markdown"),
]


@pytest.fixture(scope="module")
def forked():
    """Processes forked from one that has imported everything; it does not get our `sys.path` before Python 3.13."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(Path(__file__).parent))
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["warm"])
        process = context.Process(target=abs, args=(0,))
        process.start()
        process.join()
    return context


def seconds_undisturbed(forked, config: Path) -> float:
    """From where the first step could begin to the end: a kill may take so long to come, however fast the machine."""
    process = forked.Process(target=train, args=(config, PAUSE))
    process.start()
    attached = config.with_name("attached")
    while not attached.exists() and process.is_alive():
        time.sleep(0.002)
    begun = time.monotonic()
    process.join(300)
    assert process.exitcode == 0
    return time.monotonic() - begun


def run_to_its_end(forked, config: Path, kill_after: float) -> None:
    """Killed so many seconds after its first step could begin, or while it starts where that is below 0."""
    first = forked.Process(target=train, args=(config, PAUSE))
    first.start()
    attached = config.with_name("attached")
    while kill_after >= 0 and not attached.exists() and first.is_alive():
        time.sleep(0.002)
    first.join(abs(kill_after))
    first.kill()
    first.join()
    ended = config.with_name("ended")
    if not ended.exists():
        second = forked.Process(target=train, args=(config, PAUSE))
        second.start()
        second.join(300)
        assert second.exitcode == 0
    assert ended.exists()


def check_told(config: Path, bodies: list[str]) -> int:
    """Every incident that fired was told; no message arrived more than twice. How many arrived twice."""
    arrived = Counter(body.strip() for body in bodies)
    with Run.open(config.parent / "output") as run:
        incidents, outbox, last = run.incidents(), run.outbox(), run.steps
    assert last == (1, LAST)
    assert {incident.rule for incident in incidents} == {"LossHigh", "NormJump", "NormHigh"}
    for incident in incidents:
        about = [each.notice.body.strip() for each in outbox if incident.id in each.notice.incidents]
        assert any(arrived[body] for body in about), f"nobody was told of {incident.id}"
    assert all(each.accepted for each in outbox)
    assert max(arrived.values()) <= 2
    return sum(count > 1 for count in arrived.values())


def test_fifty_killed_runs(forked, inbox, tmp_path):
    seed = random.randrange(1 << 32)
    moments = random.Random(seed)
    twice, killed = 0, 0
    (tmp_path / "undisturbed").mkdir()
    longest = seconds_undisturbed(forked, write_config(tmp_path / "undisturbed", [inbox.url]))
    for number in range(RUNS):
        folder = tmp_path / str(number)
        folder.mkdir()
        config = write_config(folder, [inbox.url])
        inbox.taken.clear()
        moment = moments.uniform(-0.05, longest)
        run_to_its_end(forked, config, moment)
        twice += check_told(config, [message["message"] for message in inbox.taken])
        with Run.open(folder / "output") as run:
            killed += len(run.attempts()) > 1
    print(f"seed {seed}: {killed} killed under way, {twice} messages twice")
    assert killed >= RUNS // 4, "the moments of the kills must fall into the runs"


def test_a_run_that_is_killed_again_and_again(forked, inbox, tmp_path):
    config = write_config(tmp_path, [inbox.url])
    moments = random.Random(7)
    for _ in range(6):
        process = forked.Process(target=train, args=(config, PAUSE))
        process.start()
        time.sleep(moments.uniform(0.1, 0.4))
        process.kill()
        process.join()
    process = forked.Process(target=train, args=(config, PAUSE))
    process.start()
    process.join(300)
    with Run.open(tmp_path / "output") as run:
        told = {id_ for each in run.outbox() if each.accepted for id_ in each.notice.incidents}
        assert told == {incident.id for incident in run.incidents()}
