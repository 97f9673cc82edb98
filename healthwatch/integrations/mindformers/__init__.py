"""MindSpore Transformers' PyNative trainer: a callback, known to the trainer's YAML once this package is imported.

callbacks:
- type: HealthWatch
config: train.yaml       # the file itself; without it the trainer's own configuration is read
"""

from __future__ import annotations

from healthwatch.integrations.mindformers.callback import HealthWatch

__all__ = ["HealthWatch"]
