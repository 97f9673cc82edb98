"""MindSpore's profiler behind the `Profiler` port: one `profile` object a window, and nobody else's ever harmed.

The profiler's state is global to the process and most of its failures are swallowed, so that everything here is
checked: nobody may be recording or about to record, recording must have begun, and it must have ended.
"""

from __future__ import annotations

import gc
import os
import re
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from healthwatch.config import ProfilerSection
from healthwatch.integrations.mindspore.analysis import Analysis, ForkedAnalysis, FreshAnalysis

_SHARED = (  # what constructing a `profile` overwrites, by the module and the singleton that hold it
    ("profiler_context", "ProfilerContext", ("_profiler_params_mgr", "_profiler_path_mgr")),
    ("profiler_context", "ProfilerContext", ("_on_trace_ready_output_path", "_mode")),
    ("profiler_path_manager", "ProfilerPathManager", ("_worker_name", "_dir_path")),
)
_ACCEPTED_PATH = re.compile(r"[\w./~\s\u4e00-\u9fa5-]+", re.ASCII)
_ASCEND_HOME = "ASCEND_HOME_PATH"
_TRACE = "*/ASCEND_PROFILER_OUTPUT/trace_view.json"


Shared: TypeAlias = list[tuple[Any, str, Any]]  # holder, attribute, value


class ProfilerError(RuntimeError):
    """MindSpore's profiler can't be used now, or did not do what it was asked; the message says why."""


@dataclass(slots=True)
class _Window:
    """A `profile` object of ours between start and stop."""

    profile: Any
    folder: Path
    steps: int
    before: Shared  # what the process shared before our object was constructed, and since
    own: Shared
    parameters: Any
    others: list[weakref.ref[Any]]  # constructed before ours, by somebody else
    ended: int = 0


@dataclass(slots=True)
class MindSporeProfiler:
    """Implements `alerting.ports.Profiler`; MindSpore is imported when the first window is asked for.

    `takes_window` is false under a trainer that records the static window itself.
    """

    takes_window: bool = True
    _window: _Window | None = None
    _analyses: dict[Path, Analysis] = field(default_factory=dict)
    _earlier: dict[Path, frozenset[Path]] = field(default_factory=dict)  # traces that lay in a folder before
    _own_parameters: Any = None  # of the last window, to tell them from those of somebody else

    @property
    def concurrent_stop(self) -> bool:
        """On a CPU alone: a device's context belongs to the thread of the training."""
        return _device_target() == "CPU"

    @property
    def trace_pattern(self) -> str:
        return _TRACE

    def prepare(self) -> None:
        """Make now what MindSpore makes on first use, so that no step has to wait for it.

        Without ASCEND_HOME_PATH it would look for the version of CANN in everything below the working directory.
        """
        from mindspore.profiler.common.profiler_info import ProfilerInfo

        unset = _ASCEND_HOME not in os.environ
        if unset:
            os.environ[_ASCEND_HOME] = os.devnull
        try:
            ProfilerInfo()
        finally:
            if unset:
                del os.environ[_ASCEND_HOME]

    def busy(self, steps: int) -> bool:
        """Whether a profiler records, or one that has been started will within the next `steps` steps."""
        from mindspore.profiler.profiler_interface import ProfilerInterface

        if self._window is not None or ProfilerInterface.is_initialized:
            return True
        return self._foreign() and any(_will_record(each, steps) for each in _profiles())

    def _foreign(self) -> bool:
        """Whether somebody else has constructed a profiler since ours; only then is it looked for."""
        parameters = _parameters()
        return parameters is not None and parameters is not self._own_parameters

    def start(self, folder: Path, steps: int, settings: ProfilerSection) -> None:
        """Begin recording. Raises ProfilerError where it is not safe or did not begin."""
        if self.busy(steps):
            raise ProfilerError("another profiler is active in this process")
        if not _ACCEPTED_PATH.fullmatch(str(folder.absolute())):
            raise ProfilerError(f"MindSpore's profiler takes no path like {folder}: letters, digits, . _ - ~ only")
        self._earlier[folder] = frozenset(folder.glob(_TRACE))
        before = _save()
        others = [weakref.ref(each) for each in _profiles()] if self._foreign() else []
        try:
            own = self._begin(folder, steps, settings)
        except BaseException:
            _restore(before)
            raise
        self._own_parameters = _parameters()
        self._window = _Window(own, folder, steps, before, _save(), self._own_parameters, others)

    def step(self) -> None:
        """A step has ended. The last one is closed by `stop`, which is then all that can take long.

        Raises ProfilerError where somebody else has begun to record: the window is theirs from then on.
        """
        window = self._window
        if window is None:
            return
        window.ended += 1
        self._give_way(window)
        if window.ended < window.steps:
            window.profile.step()

    def stop(self) -> None:
        """End the window and leave the analysis to another process. Raises ProfilerError where it did not end."""
        from mindspore.profiler.profiler_interface import ProfilerInterface

        window = self._window
        if window is None:
            return
        self._give_way(window)
        self._end(window)
        _restore(window.before)
        if ProfilerInterface.is_initialized:
            raise ProfilerError("MindSpore's profiler did not end")

    def _end(self, window: _Window) -> None:
        from mindspore.profiler.common.process_pool import MultiProcessPool

        self._window = None
        forked = MultiProcessPool().porcess_list
        before = len(forked)
        if window.ended >= window.steps:
            window.profile.step()
        window.profile.stop()
        self._analyses.setdefault(window.folder, ForkedAnalysis(forked[before:]))

    def _give_way(self, window: _Window) -> None:
        """If somebody else has set up or started a profiler since, end ours as it should be, and let theirs record."""
        from mindspore.profiler.profiler_interface import ProfilerInterface

        started = [each for each in (other() for other in window.others) if _records(each)]
        if _parameters() is window.parameters and not started:
            return
        theirs = _save() if _parameters() is not window.parameters else window.before
        _restore(window.own)
        self._end(window)
        _restore(theirs)
        if any(_records(each) for each in _profiles()):
            ProfilerInterface.init()
            ProfilerInterface.start()
        raise ProfilerError("another profiler was set up inside the window, which was left to it")

    def trace(self, folder: Path) -> Path | None:
        """The finished trace of a window; None while it is analysed. Raises ProfilerError if there will be none."""
        analysis = self._analyses.get(folder)
        if analysis is not None and analysis.running():
            return None
        found = set(folder.glob(_TRACE)) - self._earlier.get(folder, frozenset())
        if not found:
            raise ProfilerError("the analysis ended without a trace")
        return max(found, key=lambda trace: trace.stat().st_mtime_ns)

    def abandon(self, folder: Path) -> None:
        """End an analysis that takes too long."""
        if folder in self._analyses:
            self._analyses[folder].end()

    def _begin(self, folder: Path, steps: int, settings: ProfilerSection) -> Any:
        """A `profile` object that records."""
        from mindspore.profiler import profile, schedule, tensorboard_trace_handler
        from mindspore.profiler.profiler_interface import ProfilerInterface

        device_target = _device_target()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # levels without mstx: what is recorded stands in the manifest
            ready = tensorboard_trace_handler(str(folder.absolute()), async_mode=True)
            if ready is None:
                raise ProfilerError(f"MindSpore's profiler does not accept the folder {folder}")
            own = profile(
                **arguments(settings, device_target),
                start_profile=False,
                schedule=schedule(wait=0, warmup=0, active=steps, repeat=1),
                on_trace_ready=self._analyse_later(folder) if device_target == "CPU" else ready,
            )
        own.start()
        if not ProfilerInterface.is_initialized:
            own._has_started = False  # or its destructor would stop what never began
            raise ProfilerError(f"MindSpore's profiler did not start; can {folder} be written?")
        return own

    def _analyse_later(self, folder: Path) -> Callable[[Any], None]:
        """What MindSpore calls once a window is recorded: keeps all that the analysis will need."""

        def ready(_interface: Any) -> None:
            from mindspore.profiler.common.profiler_context import ProfilerContext
            from mindspore.profiler.common.profiler_path_manager import ProfilerPathManager

            ProfilerPathManager().create_output_path()
            self._analyses[folder] = FreshAnalysis(folder, ProfilerContext().to_dict())

        return ready


def arguments(settings: ProfilerSection, device_target: str) -> dict[str, Any]:
    """The reference's `profiler` section as keyword arguments of `mindspore.profiler.profile`.

    A level that is none of 0, 1, 2 is LevelNone. On a CPU only the operators of the CPU can be recorded, and memory
    is not asked for: MindSpore could not stop recording it again.
    """
    from mindspore.profiler import AicoreMetrics, ProfilerActivity, ProfilerLevel, _ExperimentalConfig

    levels = {0: ProfilerLevel.Level0, 1: ProfilerLevel.Level1, 2: ProfilerLevel.Level2}
    level = levels.get(settings.profiler_level, ProfilerLevel.LevelNone)
    detailed = level in (ProfilerLevel.Level1, ProfilerLevel.Level2)
    metrics = AicoreMetrics.PipeUtilization if detailed else AicoreMetrics.AiCoreNone
    on_cpu = device_target == "CPU"
    activities = [ProfilerActivity.CPU] if settings.profile_cpu or on_cpu else []
    return {
        "activities": activities + ([] if on_cpu else [ProfilerActivity.NPU]),
        "with_stack": settings.with_stack,
        "profile_memory": settings.profile_memory and not on_cpu,
        "experimental_config": _ExperimentalConfig(profiler_level=level, aic_metrics=metrics, mstx=settings.mstx),
    }


def _device_target() -> str:
    from mindspore import context

    return str(context.get_context("device_target"))


def _parameters() -> Any:
    """Those of whichever `profile` was constructed last, None if none ever was."""
    from mindspore.profiler.common.profiler_context import ProfilerContext

    return getattr(ProfilerContext(), "_profiler_params_mgr", None)


def _profiles() -> list[Any]:
    """Every profile object alive, found through its class: MindSpore keeps no list of them."""
    from mindspore.profiler import profiler

    kinds = tuple(getattr(profiler, name) for name in ("Profile", "Profiler") if hasattr(profiler, name))
    return [each for each in gc.get_referrers(*kinds) if issubclass(type(each), kinds)]


def _will_record(other: Any, steps: int) -> bool:
    """Whether a started profile's schedule has anything to do in the steps ahead; two more for who calls first."""
    from mindspore.profiler.schedule import ProfilerAction

    if not getattr(other, "_has_started", False):
        return False
    ahead = range(other.step_num, other.step_num + steps + 2)
    return any(other.schedule(step) != ProfilerAction.NONE for step in ahead)


def _records(other: Any) -> bool:
    """Whether a profile takes itself to be recording now."""
    from mindspore.profiler.schedule import ProfilerAction

    recording = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
    return bool(getattr(other, "_has_started", False)) and other.current_action in recording


def _save() -> Shared:
    from importlib import import_module

    saved = []
    for module, name, attributes in _SHARED:
        holder = getattr(import_module(f"mindspore.profiler.common.{module}"), name)()
        saved += [(holder, attribute, getattr(holder, attribute)) for attribute in attributes]
    return saved


def _restore(shared: Shared) -> None:
    for holder, attribute, value in shared:
        setattr(holder, attribute, value)
