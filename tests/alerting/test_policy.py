"""Groups as the config names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from healthwatch.alerting.model import Incident, Now, Sample
from healthwatch.alerting.policy import policy_of
from healthwatch.config import Config

NOW = Now(10, 0.0, 1, 0.0)
INCIDENT = Incident("A@10", "A", "critical", NOW, NOW, None, (Sample((), 9.0),), 1, 1)


@pytest.mark.parametrize(
    ("name", "value"), [("run", "r"), ("rule", "A"), ("alertname", "A"), ("severity", "critical"), ("layer", "")]
)
def test_incidents_are_grouped_by(name, value):
    config = Config(run="r", output=Path(), rules=(), digest="", group_by=(name,))
    assert policy_of(config, ()).group(INCIDENT) == ((name, value),)
