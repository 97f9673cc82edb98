"""Processor time a sample for a whole history, beside what else could judge it: `python benchmarks/peers.py`.

Each peer has those rules of the workload that it can express, ours the same rules on the same samples. Use the ratios.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import numpy as np
from harness import histories, prometheus, victoria
from harness.histories import Replay
from harness.measure import has_fast, numpy_only
from harness.workload import Workload

TARGETS = {"vmalert -replay": 50}
"""How many times faster ours is to be, with the `fast` extra."""

SAME = 0.05
"""Breaches may differ by so much: VictoriaMetrics drops NaN, windows that are not full yet are cut in other ways."""


@dataclass(frozen=True, slots=True)
class Peer:
    """`replay` is None where what it `needs` is not here."""

    name: str
    rules: str
    work: Workload
    replay: Callable[[Workload], Replay] | None
    needs: str


@dataclass(frozen=True, slots=True)
class Comparison:
    peer: Peer
    theirs: Replay
    plain: Replay
    fast: Replay | None

    HEAD = (
        f"{'peer':18}{'rules':7}{'series x steps':>16}{'peer':>10}{'ours':>8}{'times':>8}{'with fast':>11}{'times':>8}"
        f"{'breaches, ours':>19}  target"
    )

    def __str__(self) -> str:
        peer = self.peer
        steps, series = peer.work.values.shape
        least = TARGETS.get(peer.name)
        breaches = f"{self.theirs.breaches:,}, {self.plain.breaches:,}"
        return (
            f"{peer.name:18}{peer.rules:7}{f'{series:,} x {steps:,}':>16}{self.theirs.nanoseconds(peer.work):>10,.0f}"
            f"{self._ours(self.plain, 8)}{self._ours(self.fast, 11)}"
            f"{breaches:>19}  {f'>= {least} times with fast' if least else ''}".rstrip()
        )

    def _ours(self, ours: Replay | None, width: int) -> str:
        if ours is None:
            return f"{'-':>{width}}{'-':>8}"
        return f"{ours.nanoseconds(self.peer.work):>{width},.0f}{self.theirs.seconds / ours.seconds:>8.1f}"

    @property
    def same(self) -> bool:
        """Whether both sides have found about the same, and something."""
        ours = {replay.breaches for replay in (self.plain, self.fast) if replay}
        return len(ours) == 1 and abs(self.theirs.breaches - min(ours)) <= SAME * min(ours) and 0 not in ours


def peers(options: argparse.Namespace) -> Iterator[Peer]:
    work = Workload.of(options.series, options.steps)
    for name, rules, replay in (("bottleneck", "a", histories.bottleneck), ("screamer", "abcdf", histories.screamer)):
        yield Peer(name, rules, work, replay if find_spec(name) else None, "the `bench` extra")
    promtool = prometheus.tool("promtool")
    few = _eventful(work, 100, 300)
    tested = partial(prometheus.promtool, program=promtool) if promtool else None
    yield Peer("promtool", prometheus.RULES, few, tested, "promtool (`make tools`)")
    vmalert, server = prometheus.tool("vmalert"), prometheus.tool("victoria-metrics")
    served = Workload(work.values[: options.vmalert], work.labels)
    replayed = partial(victoria.replay, vmalert=vmalert, victoria_metrics=server) if vmalert and server else None
    yield Peer(
        "vmalert -replay", prometheus.RULES, served, replayed, "vmalert and victoria-metrics (docs/benchmarks.md)"
    )


def _eventful(work: Workload, series: int, steps: int) -> Workload:
    """The beginning of those series in which most of the faults are planted: a few at random would hold none."""
    values = work.values[:steps]
    chosen = np.sort(np.argsort((values < 4).sum(axis=0), kind="stable")[:series])
    return Workload(values[:, chosen], [work.labels[place] for place in chosen])


def compare(peer: Peer, replay: Callable[[Workload], Replay]) -> Comparison:
    with numpy_only():
        plain = histories.engine(peer.work, peer.rules)
    fast = histories.engine(peer.work, peer.rules) if has_fast() else None
    return Comparison(peer, replay(peer.work), plain, fast)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=20_480)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--vmalert", type=int, default=500, help="steps that vmalert is given at most")
    options = parser.parse_args()
    histories.engine(Workload.of(256, 120), "abcdef")  # compiles
    print("nanoseconds a sample; ours with numpy only and with the fast extra; times: how many times faster ours is")
    print(Comparison.HEAD)
    different = []
    for peer in peers(options):
        if peer.replay is None:
            print(f"{peer.name:18}not here: needs {peer.needs}", flush=True)
            continue
        found = compare(peer, peer.replay)
        print(found, flush=True)
        if not found.same:
            different.append(peer.name)
    if different:
        raise SystemExit(f"not the same work, see the breaches: {', '.join(different)}")


if __name__ == "__main__":
    main()
