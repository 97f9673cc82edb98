from __future__ import annotations

from pathlib import Path

import pytest
from log_reading import LOGS


@pytest.fixture(scope="session")
def logs(shared: Path) -> Path:
    return shared / LOGS
