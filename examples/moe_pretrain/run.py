"""The demo: train with planted faults, let healthwatch find them, and check everything that it said and sent.

`python -m examples.moe_pretrain.run` needs the extras `mindspore` and `demo`. It exits 0 only if all of it is true.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from examples.moe_pretrain import checks, show
from examples.moe_pretrain.evidence import Evidence
from examples.moe_pretrain.faults import PLANTED
from examples.moe_pretrain.receivers import http_receiver, mail_receiver
from examples.moe_pretrain.train import CONFIG, STEPS, train

OUTPUT = Path("output/moe_pretrain")  # as train.yaml has it
PROGRESS_EVERY = 20


@contextmanager
def logged_to(path: Path) -> Iterator[None]:
    """The log of healthwatch, in a file and between the lines of progress."""
    logger = logging.getLogger("healthwatch")
    logger.setLevel(logging.INFO)
    file, screen = logging.FileHandler(path, encoding="utf-8"), logging.StreamHandler(sys.stdout)
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    screen.setFormatter(logging.Formatter("         %(levelname)s %(message)s"))
    handlers: tuple[logging.Handler, ...] = (file, screen)
    for handler in handlers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for handler in handlers:
            logger.removeHandler(handler)
            handler.close()


class Progress:
    """A line every few steps."""

    def __init__(self) -> None:
        self.began = self.last = time.perf_counter()

    def __call__(self, step: int, loss: float) -> None:
        if step % PROGRESS_EVERY == 0:
            now = time.perf_counter()
            pace, self.last = (now - self.last) / PROGRESS_EVERY, now
            print(f"step {step:3}/{STEPS}  loss {loss:6.3f}  {pace:.2f} s a step", flush=True)


def run(folder: Path) -> Evidence:
    """One training with both receivers listening; its configuration and what they got are kept beside the recording."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = folder / CONFIG.name
    shutil.copy(CONFIG, config)
    with http_receiver() as http, mail_receiver() as mail, logged_to(folder / "healthwatch.log"):
        os.environ |= {"DEMO_HTTP_URL": http.url, "DEMO_MAIL_URL": mail.url}
        train(PLANTED, Progress(), config)
        evidence = Evidence(folder, tuple(http.received), tuple(mail.received))
    evidence.save()
    return evidence


def main() -> int:
    began = time.perf_counter()
    evidence = run(OUTPUT)
    found = checks.run(evidence)
    console = Console(width=None if sys.stdout.isatty() else 160)
    show.received(console, evidence)
    show.incidents(console, evidence)
    show.problems(console, found)
    failed = sum(bool(wrong) for _, wrong in found)
    console.print(f"output: {OUTPUT.resolve()}  ({time.perf_counter() - began:.0f} s)", soft_wrap=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
