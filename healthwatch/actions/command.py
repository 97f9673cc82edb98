"""The command action: a program of the user's gets the incident as JSON. No shell is involved, and no step waits."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import asdict
from typing import Any

from healthwatch.actions.action import Site
from healthwatch.alerting.model import Intent
from healthwatch.recording.codec import dump
from healthwatch.stream.ticks import parse_duration

TIME_LIMIT = 30.0  # seconds
MOST_WAITING = 32

Job = tuple[list[str], float, bytes, str]


class Commands:
    """Runs commands one after the other on a daemon thread, which starts with the first one."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._jobs: queue.Queue[Job] = queue.Queue(MOST_WAITING)
        self._thread: threading.Thread | None = None
        self._idle = threading.Event()
        self._idle.set()
        self._under_way = 0
        self._lock = threading.Lock()

    @staticmethod
    def check(argument: Any) -> str:
        """What is wrong with `prog`, `[prog, argument, ...]` or `{run: ..., timeout: 30s}`."""
        program, limit = _parts(argument)
        if not program or not all(isinstance(part, str) and part for part in program):
            return "name a program, or a list of a program and its arguments"
        if limit is None or limit <= 0:
            return "timeout is a wall-clock time such as 30s"
        if shutil.which(program[0]) is None:
            return f"there is no program {program[0]}"
        return ""

    def perform(self, intent: Intent) -> None:
        program, limit = _parts(intent.argument)
        for incident in intent.incidents:
            if self._site.config.dry_run:
                self._site.tell("command", f"dry run: {program[0]} would have run for {incident.id}")
                continue
            self._queue((program, limit or TIME_LIMIT, self._told(intent, incident), incident.id))

    def _told(self, intent: Intent, incident: Any) -> bytes:
        state = "firing" if incident.active else incident.ending
        about = {"run": self._site.config.run, "rank": self._site.rank, "reason": intent.reason, "state": state}
        return dump({**about, "now": asdict(intent.now), "incident": asdict(incident)}).encode()

    def _queue(self, job: Job) -> None:
        with self._lock:
            try:
                self._jobs.put_nowait(job)
            except queue.Full:
                self._site.tell("command", f"{MOST_WAITING} commands wait; the one for {job[-1]} is given up")
                return
            self._under_way += 1
            self._idle.clear()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="healthwatch-command", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            program, limit, told, incident = self._jobs.get()
            try:
                problem = _run(program, limit, told)
            except Exception as error:  # a thread that ends runs no more commands
                problem = type(error).__name__
            if problem:
                self._site.tell("command", f"the command {program[0]} for {incident}: {problem}")
            with self._lock:
                self._under_way -= 1
                if not self._under_way:
                    self._idle.set()

    def close(self, timeout: float) -> None:
        """Wait for what runs; what runs longer goes on without us, what has not begun is told."""
        if not self._idle.wait(timeout):
            waiting = self._jobs.qsize()
            left = f", {waiting} have not begun" if waiting else ""
            self._site.tell("command", f"a command still runs at the end{left}")


def _parts(argument: Any) -> tuple[list[Any], float | None]:
    limit: float | None = TIME_LIMIT
    if isinstance(argument, dict):
        if "timeout" in argument:
            found = parse_duration(argument["timeout"])
            limit = found.seconds if found is not None else None
        argument = argument.get("run")
    if isinstance(argument, str):
        argument = [argument]
    return (list(argument) if isinstance(argument, (list, tuple)) else []), limit


def _run(program: list[str], limit: float, told: bytes) -> str:
    """What went wrong, empty where nothing did. What the program prints is its own affair."""
    end = time.monotonic() + limit
    try:
        child = subprocess.Popen(
            program,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that whatever it starts ends with it, and Ctrl-C is not its business
        )
    except OSError as error:
        return f"can't be started: {error.strerror}"
    try:
        child.communicate(told, timeout=max(end - time.monotonic(), 0.0))
    except subprocess.TimeoutExpired:
        _kill(child)
        return f"ended after {limit:g} s, its time limit"
    except BrokenPipeError:
        child.wait()
    return f"exit code {child.returncode}" if child.returncode else ""


def _kill(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
