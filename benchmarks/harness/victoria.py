"""`vmalert -replay` on a VictoriaMetrics of its own: on a loopback port, in a folder that is gone afterwards."""

from __future__ import annotations

import json
import math
import re
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml

from harness.histories import Replay
from harness.prometheus import children, rule_file
from harness.workload import GROUP, Workload

PATIENCE = 60.0  # seconds until a server that does not answer is given up


@dataclass(frozen=True, slots=True)
class Server:
    url: str

    def ask(self, path: str, body: bytes | None = None) -> str:
        with urlopen(self.url + path, data=body, timeout=PATIENCE) as answer:
            return str(answer.read().decode())

    def take_in(self, work: Workload, begin: int) -> None:
        """One step is one second; step 1 is at `begin`."""
        timestamps = [(begin + step) * 1000 for step in range(len(work.values))]
        for first in range(0, len(work.labels), GROUP):
            lines = [
                json.dumps(
                    {
                        "metric": {"__name__": "x", **work.labels[place]},
                        "values": [_number(value) for value in work.values[:, place].tolist()],
                        "timestamps": timestamps,
                    }
                )
                for place in range(first, min(first + GROUP, len(work.labels)))
            ]
            self.ask("/api/v1/import", "\n".join(lines).encode())
        self.ask("/internal/force_flush")

    def processor_time(self) -> float:
        found = re.search(r"^process_cpu_seconds_total ([0-9.e+-]+)$", self.ask("/metrics"), re.MULTILINE)
        if found is None:
            raise SystemExit("VictoriaMetrics does not tell its processor time")
        return float(found[1])

    def breaches(self, begin: int, steps: int) -> int:
        self.ask("/internal/force_flush")
        query = {"query": f"sum(count_over_time(ALERTS[{steps + 1}s]))", "time": begin + steps}
        result = json.loads(self.ask("/api/v1/query?" + urlencode(query)))["data"]["result"]
        return int(float(result[0]["value"][1])) if result else 0


def replay(work: Workload, vmalert: str, victoria_metrics: str) -> Replay:
    """Processor time of vmalert and, while it runs, of the server that it asks; what comes before is not counted."""
    steps = len(work.values)
    begin = int(time.time()) // 60 * 60 - 86_400
    with tempfile.TemporaryDirectory() as folder, _server(victoria_metrics, Path(folder)) as server:
        server.take_in(work, begin)
        Path(folder, "rules.yml").write_text(yaml.safe_dump(rule_file()))
        before = children() + server.processor_time()
        said = subprocess.run(
            [
                vmalert,
                f"-rule={folder}/rules.yml",
                f"-datasource.url={server.url}",
                f"-remoteWrite.url={server.url}",
                "-remoteWrite.maxQueueSize=10000000",
                "-evaluationInterval=1s",
                "-datasource.queryStep=1s",  # the default asks at every fifth minute, without a word
                f"-replay.timeFrom={_moment(begin)}",
                f"-replay.timeTo={_moment(begin + steps - 1)}",
                "-replay.rulesDelay=0s",
                "-replay.disableProgressBar",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = children() + server.processor_time() - before
        if said.returncode:
            raise SystemExit(f"vmalert: {said.stderr[-2000:]}")
        return Replay(seconds, server.breaches(begin, steps))


@contextmanager
def _server(program: str, folder: Path) -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    log = folder / "server.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [
                program,
                f"-storageDataPath={folder}/storage",
                f"-httpListenAddr={address}",
                "-search.disableCache",
                "-search.maxQueryDuration=10m",
                "-search.maxUniqueTimeseries=10000000",
            ],
            stdout=output,
            stderr=output,
        )
    try:
        server = Server(f"http://{address}")
        _await(server, process, log)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        with suppress(URLError):
            server.ask("/health")
            return
        time.sleep(0.1)
    raise SystemExit(f"VictoriaMetrics does not answer: {log.read_text()[-2000:]}")


def _moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _number(value: float) -> float | str | None:
    """As its import wants it; a NaN is dropped there."""
    if math.isnan(value):
        return None
    return "Infinity" if math.isinf(value) else value
