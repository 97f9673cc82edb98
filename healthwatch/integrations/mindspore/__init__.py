"""MindSpore training loops: gradients, losses, counters, logits, the learning rate and the profiler."""

from __future__ import annotations

from healthwatch.integrations.mindspore.integration import MindSpore
from healthwatch.integrations.mindspore.profiler import MindSporeProfiler

__all__ = ["MindSpore", "MindSporeProfiler"]
