"""How fast a log is read, in processor time: norms of 1,000 parameters a step between lines that are of no interest."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from healthwatch.readers import open_log

STEPS, PARAMETERS, OTHERS = 100, 1000, 300
PREFIX = "[INFO] 2026-11-29 18:40:23,806 [mindformers/pynative/tools/monitor.py:96] flush_pending: "


def write(path: Path) -> int:
    """Returns the number of lines."""
    lines: list[str] = []
    for step in range(1, STEPS + 1):
        lines.append(
            f"{PREFIX}{{ step:[{step:5d}/{STEPS:5d}], consumed_samples: {2 * step}, global_batch_size: 2, "
            "loss:   2.288770, per_step_time:    194ms, lr: 5.000000e-03, grad_norm:   1.681723, throughput:   0.00T }"
        )
        lines.append(f'{PREFIX}{{ "step": {step}, "micro_step": 1 }}')
        lines += [
            f'{PREFIX}{{ "local_norm": decoder.layers.{place // 12}.fc{place % 12}.weight: {1 + place / 7:10.6f} }}'
            for place in range(PARAMETERS)
        ]
        lines += [f"{PREFIX}what others have to say, number {number}" for number in range(OTHERS)]
    path.write_text("\n".join(lines))
    return len(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "info.log"
        lines = write(path)
        taken = []
        for _ in range(runs):
            began = time.process_time()
            frames = sum(1 for _ in open_log(path).frames())
            taken.append(time.process_time() - began)
        megabytes, seconds = path.stat().st_size / 1e6, float(np.median(taken))
    held = f"{megabytes:.1f} MB, {lines:,} lines, {frames} steps, {frames * PARAMETERS:,} norms"
    print(f"{held}: {megabytes / seconds:.0f} MB/s")


if __name__ == "__main__":
    main()
