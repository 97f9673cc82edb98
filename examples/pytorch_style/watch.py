"""How a loop in the style of PyTorch is watched, to be copied.

Of a model only `named_parameters`, `grad` and `detach().cpu().numpy()` are asked, so that nothing here imports a
framework.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from healthwatch.session import Session


class GradientNorms:
    """`micro_norm` of every trainable parameter and `grad_norm` of them all, from `grad` as `backward()` leaves it."""

    def __init__(self, hw: Session, model: Any) -> None:
        self.hw = hw
        self.parameters = [(name, each) for name, each in model.named_parameters() if each.requires_grad]
        self.labels: list[Mapping[str, str]] = [{"param": name} for name, _ in self.parameters]

    def log(self) -> None:
        norms = np.array([_norm(each.grad) for _, each in self.parameters])
        self.hw.log_values("micro_norm", norms, self.labels, 0)
        self.hw.log(grad_norm=float(np.sqrt(np.square(norms).sum())))


def _norm(grad: Any) -> float:
    return 0.0 if grad is None else float(np.linalg.norm(np.asarray(grad.detach().cpu().numpy(), np.float64)))
