"""The path for devices, run on a CPU: what crosses to the host, how often, and what it says there."""

from __future__ import annotations

import numpy as np
import pytest

mindspore = pytest.importorskip("mindspore", reason="needs the mindspore extra")

from healthwatch.integrations.mindspore import reading  # noqa: E402
from healthwatch.integrations.mindspore.reading import DeviceReader, HostReader  # noqa: E402

pytestmark = pytest.mark.mindspore

SHAPES = [(4, 4), (3,), (4, 4), (1, 7), (3,), (4, 4)]


@pytest.fixture
def crossings(monkeypatch) -> list[object]:
    found: list[object] = []
    real = mindspore.Tensor.asnumpy

    def spy(self):
        found.append(self)
        return real(self)

    monkeypatch.setattr(mindspore.Tensor, "asnumpy", spy)
    return found


def gradients(dtype=np.float32) -> list[object]:
    random = np.random.default_rng(5)
    return [mindspore.Tensor(random.standard_normal(shape).astype(dtype)) for shape in SHAPES]


@pytest.mark.parametrize("small", [0, 8, 1 << 16])  # none, some, all of them are small
@pytest.mark.parametrize("held", [5, 1 << 20])  # summed along the way, or at the end
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_sums_of_squares_are_those_of_the_host(monkeypatch, small, held, dtype):
    monkeypatch.setattr(reading, "SMALL", small)
    monkeypatch.setattr(reading, "HELD", held)
    grads = gradients(dtype)
    grads.insert(2, None)
    device = DeviceReader()
    found = device.squares(grads)
    device.fetch()
    assert found.values == pytest.approx(HostReader().squares(grads).values, rel=1e-3 if dtype == np.float16 else 1e-6)


def test_one_copy_a_step_whatever_was_read(crossings):
    device = DeviceReader()
    grads = gradients()
    taken = [device.squares(grads), device.copies(grads[:2]), device.squares(grads[3:]), device.copies([grads[1]])]
    assert crossings == []
    device.fetch()
    assert len(crossings) == 1
    host = HostReader()
    expected = [host.squares(grads), host.copies(grads[:2]), host.squares(grads[3:]), host.copies([grads[1]])]
    for ours, theirs in zip(taken, expected, strict=True):
        assert ours.values == pytest.approx(theirs.values, rel=1e-6)


def test_no_kernel_for_each_of_a_thousand_small_gradients(monkeypatch):
    from mindspore import ops

    calls: list[str] = []
    for name in ("stack", "square", "concat"):
        real = getattr(ops, name)

        def spy(*args, _name=name, _real=real, **kwargs):
            calls.append(_name)
            return _real(*args, **kwargs)

        monkeypatch.setattr(ops, name, spy)
    monkeypatch.setattr(reading, "_half_of_squares", lambda: pytest.fail("a kernel for a single gradient"))
    device = DeviceReader()
    device.squares([gradient for _ in range(50) for gradient in gradients()])
    device.fetch()
    assert calls.count("stack") == len(set(SHAPES))
    assert len(calls) <= 10
