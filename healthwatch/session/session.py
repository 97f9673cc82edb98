"""One training process: calls of the loop in, closed frames out."""

from __future__ import annotations

import atexit
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from numpy.typing import ArrayLike

from healthwatch.config import Config
from healthwatch.diagnostics import counted
from healthwatch.monitors.log_records import LogRecords
from healthwatch.rulefile import Rule
from healthwatch.session.ending import is_error, unhandled
from healthwatch.session.guard import Guard
from healthwatch.session.intake import Intake, number, step_number
from healthwatch.session.integration import FindIntegration, Integration
from healthwatch.session.meter import PARTS, Budget
from healthwatch.session.opening import open_pipeline, open_recording
from healthwatch.session.pipeline import Pipeline
from healthwatch.session.stopping import TrainingStopped
from healthwatch.session.unread import Unread
from healthwatch.stream import Frame, SeriesTable

if TYPE_CHECKING:
    from healthwatch.monitors import Monitor

RUN_FAILED = "run_failed"
PART_LABELS = [{"part": part} for part in PARTS]

P = ParamSpec("P")


def _watched(method: Callable[Concatenate[Session, P], None]) -> Callable[Concatenate[Session, P], None]:
    """A call of the loop: guarded, timed, and nothing at all where nobody watches."""

    @wraps(method)
    def call(self: Session, /, *args: P.args, **kwargs: P.kwargs) -> None:
        if self._off():
            return
        self.attach()  # does nothing the second time; the first time it may refuse, which is before step 1
        began = time.perf_counter()
        with self.guard(method.__name__.strip("_")):
            method(self, *args, **kwargs)
        took = time.perf_counter() - began
        self.healthwatch_seconds += took
        self.longest_call = max(self.longest_call, took)

    return call


class Session:
    """Watches one training. After the first step nothing that goes wrong in here reaches the loop.

    `healthwatch_seconds` is the time spent inside its calls so far, `longest_call` the longest of them in seconds.
    """

    def __init__(self, config: Config, rules: Sequence[Rule], find_integration: FindIntegration) -> None:
        self.config, self.rules = config, tuple(rules)
        self.guard = Guard()
        self.healthwatch_seconds = self.longest_call = 0.0
        self._find_integration = find_integration
        self._integration: Integration | None = None
        self._monitors: Sequence[Monitor] = ()
        self._table = SeriesTable()
        self._intake = Intake(self._table)
        self._pipeline: Pipeline | None = None
        self._log_records = LogRecords()
        self._unread = Unread(self.rules)
        self._budget = Budget(config.budget)
        self._closed = config.disabled
        self._process = os.getpid()
        self._raised_before: BaseException | None = None
        self._attempt, self._next_step, self._micro_step, self._attempt_step = 1, 1, 0, 0
        self._ended = time.perf_counter()

    # Before the first step

    def attach(self, model: Any = None, optimizer: Any = None, *, first_step: int = 1) -> Session:
        """Find what can be measured, and open the recording. Without a model only what is logged is watched.

        Args:
            model: the network that is trained, of a framework with an integration (a `mindspore.nn.Cell`).
            optimizer: its optimizer.
            first_step: the number of the next step, for a training that goes on from a checkpoint.

        Raises:
            Invalid: the model is of no known framework, or the run can't be recorded.
        """
        if self._closed or self._pipeline is not None:
            return self
        first_step = step_number("first_step", first_step)
        integration = self._find_integration(model, self.guard) if model is not None else None
        recording = open_recording(self.config, self._table, getattr(integration, "rank", None))
        if integration is not None:
            self._monitors = integration.attach(model, optimizer, self.config, self._table)
        profiler = integration.profiler if integration is not None else None
        self._pipeline = open_pipeline(self.config, self.rules, self._table, recording, profiler, self.guard)
        self._integration = integration
        self._log_records = LogRecords.of(self.config, integration.logit_names if integration is not None else {})
        self._attempt, self._next_step = self._pipeline.recording.attempt, first_step
        self._announce(first_step, self._pipeline)
        self._pipeline.begin(first_step)
        self._ended = time.perf_counter()
        self._raised_before = unhandled()
        atexit.register(self._exit)
        return self

    def _announce(self, first_step: int, pipeline: Pipeline) -> None:
        recording, last = pipeline.recording, pipeline.last_step
        attempt = f"attempt {recording.attempt}" + (f" after step {last}" if last else "")
        self.guard.say(
            f"run {self.config.run}, {attempt}: {counted(len(self.rules), 'rule')}, recorded in {recording.path}",
            logging.INFO,
        )
        if first_step <= last:
            again = f"the run goes back from step {last} to step {first_step}"
            mend = "; a training that goes on from a checkpoint says where: attach(first_step=...)"
            level = logging.WARNING if first_step == 1 else logging.INFO
            self.guard.say(again + mend * (first_step == 1), level)

    # In the loop

    @_watched
    def micro_step(self, loss: Any = None, grads: Any = None, accumulated: Any = None) -> None:
        """A micro-batch is through its backward pass.

        Args:
            loss: its loss.
            grads: its own gradients, in the order of the optimizer's parameters.
            accumulated: the sum of this step's gradients so far, where the loop has it.
        """
        self._micro_step += 1
        if self._integration is not None:
            self._integration.micro_step(loss, grads, accumulated)
        elif loss is not None:
            self._intake.log("local_loss", loss, self._micro_step - 1)

    @_watched
    def log(self, micro_step: int | None = None, /, **scalars: Any) -> None:
        """Samples of metrics without labels, of the step under way; None is no sample.

        `micro_step` counts from 0; without it they are the whole step's. A value that is no number costs its own
        sample alone.
        """
        if not (micro_step is None or hasattr(micro_step, "__index__")):
            raise TypeError("write log(lr=0.1), or log(**values); what has labels goes to log_values")
        for metric, value in scalars.items():
            with self.guard("log"):
                if value is not None:
                    self._intake.log(metric, value, micro_step)

    @_watched
    def log_values(
        self, metric: str, values: ArrayLike, labels: Sequence[Mapping[str, str]], micro_step: int | None = None
    ) -> None:
        """One sample a label set, in their order, of the step under way.

        Args:
            metric: its name, as rules call it.
            values: one number a label set; the dtype is kept.
            labels: without `__name__`. A list that is handed in at every step is read once, so don't change it.
            micro_step: counted from 0; None for the step as a whole.
        """
        self._intake.values(metric, values, labels, micro_step)

    @_watched
    def step(
        self, loss: Any = None, grads: Any = None, *, step: int | None = None, loss_scale: Any | None = None
    ) -> None:
        """An optimizer step is over: everything logged and measured since the last one belongs to it.

        Args:
            loss: the step's loss.
            grads: the gradients of the update, where the optimizer's hook does not see them.
            step: its number, where the training went back or jumped; else one more than the last one.
            loss_scale: what the loss was multiplied by, if the gradients still are; norms are divided by it.
        """
        if loss_scale is not None and self._integration is not None:
            self._integration.loss_scale = loss_scale
        if self._pipeline is not None:
            frame = self._frame(loss, grads, self._number(step))
            with self.guard("log records"):
                self._print(frame)
            self._pipeline.step(frame)
            if self._pipeline.stopping:
                self._end()
                raise TrainingStopped(self._pipeline.stopping)

    def close(self, raised: BaseException | None = None) -> None:
        """Deliver what waits, for a few seconds at most, and end the recording. Also runs at exit.

        Args:
            raised: the exception that ends the training, if one does; `with` and the exit of the process see it
                themselves. An error is recorded as `run_failed`, at the step that it did not let end.
        """
        self._end(raised)

    def _exit(self) -> None:
        raised = unhandled()
        self._end(None if raised is self._raised_before else raised)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, _: object, raised: BaseException | None, __: object) -> None:
        self._end(raised)

    def _end(self, raised: BaseException | None = None) -> None:
        if self._off():
            return
        self._closed = True
        atexit.unregister(self._exit)
        if self._integration is not None:
            with self.guard("integration"):
                self._integration.detach()
        if self._pipeline is not None:
            if raised is not None and is_error(raised):
                with self.guard("end"):
                    self._pipeline.fail(self._failure())
            with self.guard("close"):
                self._pipeline.close("end" if raised is None else type(raised).__name__)
            self.guard.sum_up()

    # Inside

    def _off(self) -> bool:
        """Switched off or closed; a process forked off a training (a data worker) is not the training."""
        return self._closed or os.getpid() != self._process

    def _number(self, step: int | None) -> int:
        """The number of the step that is over; where the loop's is none the steps are counted on."""
        number = self._next_step
        if step is not None:
            with self.guard("step number"):
                number = step_number("step", step)
        return number

    def _frame(self, loss: Any, grads: Any, step: int) -> Frame:
        """What the step brought, closed. What can't be taken in is missing from it, the rest is there."""
        frame = Frame(step, self._attempt, time.time())
        logged = self._intake.take()
        micro_steps = max((self._micro_step, *(each.micro_step + 1 for each in logged if each.micro_step is not None)))
        self._next_step, self._micro_step = step + 1, 0
        if self._integration is not None:
            with self.guard("integration"):
                self._integration.step(loss, grads)
        elif loss is not None:
            with self.guard("log"):
                frame.add(self._table.register("loss", [{}]), number("loss", loss))
        for monitor in self._monitors:
            with self.guard(type(monitor).__name__):
                monitor.flush(frame)
        for each in logged:
            with self.guard("log"):
                frame.add(each.series, each.values, each.micro_step)
        step_time = self._step_time()
        frame.add(self._table.register("step_time", [{}]), step_time)
        self._account(frame, step_time)
        self._attempt_step += 1
        frame.add(self._table.register("attempt_step", [{}]), self._attempt_step)
        if self._attempt_step == 1:
            frame.add(self._table.register(RUN_FAILED, [{}]), 0)  # whatever ended the attempt before
        with self.guard("micro_steps"):
            frame.close(micro_steps or None)
        frame.close()  # a monitor has seen more of them than the loop has told
        return frame

    def _failure(self) -> Frame:
        """All that is known of the step under way is that it does not end."""
        frame = Frame(self._next_step, self._attempt, time.time())
        frame.add(self._table.register(RUN_FAILED, [{}]), 1)
        frame.close()
        return frame

    def _account(self, frame: Frame, step_time: float) -> None:
        """What healthwatch took since the last step was closed, and with it what that one came to."""
        taken = self.guard.meter.take()
        frame.add(self._table.register("healthwatch_seconds", PART_LABELS), taken)
        if self._integration is not None:
            remark = self._budget.account(taken, step_time, self._integration.pace)
            if remark is not None:
                self.guard.say(remark, logging.WARNING)

    def _print(self, frame: Frame) -> None:
        """The lines of the monitors that the config switches on, but for those that the trainer prints itself."""
        printed = self._integration.printed if self._integration is not None else ()
        for line in self._log_records.lines(frame, printed):
            self.guard.say(line, logging.INFO)
        for remark in (*self._log_records.remarks(), *self._unread.remarks(self._table)):
            self.guard.say(remark, logging.WARNING)

    def _step_time(self) -> float:
        """Wall seconds since the last step ended, healthwatch's own calls included, as the trainer's clock has it."""
        last, self._ended = self._ended, time.perf_counter()
        return self._ended - last
