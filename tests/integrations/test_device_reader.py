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


@pytest.mark.parametrize("small", [0, 1 << 16])
@pytest.mark.parametrize("value", [3.4e38, 1.9e19, 1.8e19, 1e15, 1.0, 1e-18])
def test_a_finite_gradient_has_a_finite_norm(monkeypatch, small, value):
    """A sum of squares runs over in float32 from values of 1.8e19 on."""
    monkeypatch.setattr(reading, "SMALL", small)
    mixed = np.array([[value, -value], [0.5 * value, 1e-9 * value]], np.float32)
    grads = [mindspore.Tensor(np.full((3, 4), value, np.float32)), mindspore.Tensor(mixed)]
    device = DeviceReader()
    found = device.squares(grads)
    device.fetch()
    assert np.sqrt(found.values) == pytest.approx(np.sqrt(HostReader().squares(grads).values), rel=1e-5)


@pytest.mark.parametrize("small", [0, 1 << 16])
def test_what_is_not_finite_stays_so(monkeypatch, small):
    monkeypatch.setattr(reading, "SMALL", small)
    grads = [mindspore.Tensor(np.array([3e38, bad], np.float32)) for bad in (np.inf, -np.inf, np.nan)]
    device = DeviceReader()
    found = device.squares(grads)
    device.fetch()
    assert np.isposinf(found.values[:2]).all()
    assert np.isnan(found.values[2])


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
    shapes = len(set(SHAPES))
    assert {name: calls.count(name) for name in set(calls)} == {
        "stack": shapes,
        "square": 2 * shapes,  # as they are, and scaled down
        "concat": shapes + 2,  # both sums of a shape; all sums; all readings
    }
