"""What an editor offers: the real YAML language server over stdio, on files that name the shipped schemas."""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from healthwatch import resources
from healthwatch.rulefile.conditions import registry

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / ".tools" / "language-server" / "node_modules" / "yaml-language-server" / "bin" / "yaml-language-server"
PATIENCE = 60.0  # seconds for one answer


def node() -> str | None:
    """Beside this Python, in the environment for development, or in the path."""
    beside = (Path(sys.executable).parent / "node", ROOT / ".venv" / "bin" / "node")
    return next((str(each) for each in beside if each.exists()), None) or shutil.which("node")


class Server:
    """Speaks LSP: Content-Length headers and JSON-RPC 2.0."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._to, self._messages = process.stdin, queue.Queue[dict[str, Any]]()
        self._last = 0
        threading.Thread(target=self._read, args=(process.stdout,), daemon=True).start()

    def _read(self, stream: IO[bytes]) -> None:
        while header := stream.readline():
            length = int(header.split(b":")[1])
            while stream.readline().strip():
                pass
            self._messages.put(json.loads(stream.read(length)))

    def tell(self, **message: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._to.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._to.flush()

    def notify(self, method: str, **params: Any) -> None:
        self.tell(method=method, params=params)

    def ask(self, method: str, **params: Any) -> Any:
        """The result; what the server asks meanwhile is answered as an editor would."""
        self._last += 1
        self.tell(id=self._last, method=method, params=params)
        while True:
            message = self._messages.get(timeout=PATIENCE)
            if message.get("method") == "workspace/configuration":
                self.tell(id=message["id"], result=[_settings(item) for item in message["params"]["items"]])
            elif "method" in message and "id" in message:
                self.tell(id=message["id"], result=None)
            elif message.get("id") == self._last:
                assert "error" not in message, message
                return message["result"]

    def diagnostics(self, uri: str) -> list[dict[str, Any]]:
        """What is underlined, once the server has looked at the file."""
        while True:
            message = self._messages.get(timeout=PATIENCE)
            if message.get("method") == "workspace/configuration":
                self.tell(id=message["id"], result=[_settings(item) for item in message["params"]["items"]])
            elif message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri:
                found: list[dict[str, Any]] = message["params"]["diagnostics"]
                return found


def _settings(item: dict[str, Any]) -> dict[str, Any]:
    on = {"hover": True, "completion": True, "validate": True, "schemaStore": {"enable": False}}
    return on if item.get("section") == "yaml" else {}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    command = node()
    if command is None or not SERVER.exists():
        pytest.skip("needs the YAML language server, which is not here: make tools brings it")
    process = subprocess.Popen([command, str(SERVER), "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        asked = Server(process)
        snippets = {"completion": {"completionItem": {"snippetSupport": True}}}
        capabilities = {"workspace": {"configuration": True}, "textDocument": snippets}
        asked.ask("initialize", processId=None, rootUri=None, capabilities=capabilities)
        asked.notify("initialized")
        yield asked
        asked.ask("shutdown")
        asked.notify("exit")
        process.wait(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()


def opened(server: Server, name: str, text: str, schema: str = "rules") -> tuple[dict[str, str], dict[str, int]]:
    """Open a file; `|` in the text is where the cursor stands."""
    address = resources.path(f"schemas/{schema}.schema.json").as_uri()
    text = f"# yaml-language-server: $schema={address}\n{text}"
    before = text.partition("|")[0]
    document = {"uri": f"file:///nowhere/{name}.yaml"}
    server.notify(
        "textDocument/didOpen",
        textDocument={**document, "languageId": "yaml", "version": 1, "text": text.replace("|", "", 1)},
    )
    return document, {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}


def completions(server: Server, name: str, text: str, schema: str = "rules") -> dict[str, dict[str, Any]]:
    document, position = opened(server, name, text, schema)
    found = server.ask("textDocument/completion", textDocument=document, position=position)
    return {item["label"]: item for item in found["items"]}


def hover(server: Server, name: str, text: str, schema: str = "rules") -> str:
    document, position = opened(server, name, text, schema)
    found = server.ask("textDocument/hover", textDocument=document, position=position)
    return str(found["contents"]["value"])


HEAD = "groups:\n  - name: g\n    rules:\n      - alert: A\n"


def test_completion_inside_when_offers_every_condition(server: Server) -> None:
    found = completions(server, "when", f"{HEAD}        when:\n          s|\n")
    assert set(found) >= {*registry().conditions, "all", "any", "not", "quorum"}
    assert "own recent median" in str(found["spike_ratio"]["documentation"])


def test_completion_inside_a_condition_offers_what_is_still_to_be_said(server: Server) -> None:
    text = f"{HEAD}        when:\n          spike_ratio:\n            metric: loss\n            |\n"
    assert {"window", "above", "min_samples", "select"} <= set(completions(server, "condition", text))


def test_completion_after_one_condition_still_offers_the_others(server: Server) -> None:
    """What oneOf and maxProperties would take away."""
    text = f"{HEAD}        when:\n          all:\n            - nonfinite: {{metric: loss}}\n            - z|\n"
    assert "zscore" in completions(server, "second", text)


def test_completion_of_keys_and_choices(server: Server) -> None:
    assert {"for_records", "inhibited_by", "settle"} <= set(completions(server, "keys", f"{HEAD}        f|\n"))
    assert {"active", "shadow"} <= set(completions(server, "mode", f"{HEAD}        mode: |\n"))
    config = completions(server, "config", "healthwatch:\n  r|\n", "config")
    assert {"receivers", "rules", "escalation", "record"} <= set(config)
    assert {"rule_files", "tests"} <= set(completions(server, "test", "r|\n", "ruletest"))


def test_hover_explains_a_condition_and_a_parameter(server: Server) -> None:
    text = f"{HEAD}        when:\n          spike_ratio:\n            metric: loss\n            window: 20\n"
    condition = hover(server, "hover", text.replace("spike_ratio", "spi|ke_ratio"))
    assert "A value many times its own recent median" in condition
    assert "above: 8" in condition
    assert "make the baseline" in hover(server, "parameter", text.replace("window", "win|dow"))
    ladder = "healthwatch:\n  escalation:\n    critical:\n      - {log: error, aft|er: 20}\n"
    assert "fired so long" in hover(server, "ladder", ladder, "config")


def test_mistakes_are_underlined(server: Server) -> None:
    document, _ = opened(server, "mistake", f"{HEAD}        when: {{spike_ration: {{metric: loss}}}}\n")
    (found,) = server.diagnostics(document["uri"])
    assert "spike_ration" in found["message"]
    assert found["range"]["start"] == {"line": 5, "character": 15}
    document, _ = opened(server, "sound", f"{HEAD}        when: {{spike_ratio: {{metric: loss}}}}\n")
    assert server.diagnostics(document["uri"]) == []
