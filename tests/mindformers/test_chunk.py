"""Counters and logits around a forward pass, whatever a model or a callback does with them in between."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest


@pytest.fixture
def parts(trainer_ready):
    """A model with one router and one attention, the chunk that reads it, and how a pass is made."""
    import mindspore as ms
    from mindspore import Parameter, Tensor, nn
    from mindspore.graph.api import _no_grad

    from healthwatch.integrations.mindformers.chunk import Chunk
    from healthwatch.integrations.mindspore.reading import DeviceReader, HostReader
    from healthwatch.monitors.pace import Pace

    class Layer(nn.Cell):
        topk = 2

        def __init__(self) -> None:
            super().__init__()
            self.tokens_per_expert = Parameter(Tensor(np.zeros(3, np.float32)), requires_grad=False)
            self.max_logits_val = Tensor(np.zeros(2, np.float32))
            self.before: Callable[[], None] = lambda: None

        def count(self, counts) -> None:
            with _no_grad():
                self.tokens_per_expert.copy_(self.tokens_per_expert + Tensor(np.array(counts, np.float32)))

        def reset(self) -> None:
            with _no_grad():
                self.tokens_per_expert.copy_(Tensor(np.zeros(3, np.float32)))

        def attend(self, logits) -> None:
            highest = ms.ops.maximum(self.max_logits_val, Tensor(np.array(logits, np.float32)))
            with _no_grad():
                self.max_logits_val.copy_(highest)

    class Model(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.CellList([Layer()])
            self.set_train(True)

        def construct(self, do):
            do(self.layers[0])

    def make(device: bool = False):
        reader = DeviceReader() if device else HostReader()
        model = Model()
        chunk = Chunk(model, None, reader, Pace(("norms", "counters", "logits")))

        def guarded(do):
            return lambda *_: do()

        chunk.hook(guarded)
        return model, chunk, reader

    return make


@pytest.mark.parametrize("device", [False, True])
def test_a_counter_that_grows_for_ever(parts, device):
    model, chunk, reader = parts(device)
    for step in range(3):
        chunk.begin_step()
        model(lambda layer, step=step: layer.count([1 + step, 2, 3]))
        model(lambda layer: layer.count([4, 5, 6]))
        reader.fetch()
        assert [chunk.counts(micro).arrays()[0].tolist() for micro in (0, 1)] == [[1 + step, 2, 3], [4, 5, 6]]
        assert chunk.counts(2).arrays() == [None]


def test_a_counter_that_somebody_sets_back_between_two_passes(parts):
    model, chunk, reader = parts()
    chunk.begin_step()
    model(lambda layer: layer.count([9, 9, 9]))
    model.layers[0].reset()  # the optimizer, or another callback
    model(lambda layer: layer.count([1, 2, 3]))
    reader.fetch()
    assert chunk.counts(1).arrays()[0].tolist() == [1, 2, 3]


def test_a_counter_that_a_pass_itself_sets_back(parts):
    model, chunk, reader = parts()
    chunk.begin_step()
    for counts in ([5, 5, 5], [1, 2, 3]):
        model(lambda layer, counts=counts: (layer.reset(), layer.count(counts)))
    reader.fetch()
    assert [chunk.counts(micro).arrays()[0].tolist() for micro in (0, 1)] == [[5, 5, 5], [1, 2, 3]]


def test_a_layer_that_the_backward_pass_runs_again(parts):
    model, chunk, reader = parts()
    chunk.begin_step()
    for counts in ([1, 2, 3], [4, 5, 6]):
        model(lambda layer, counts=counts: layer.count(counts))
        model.layers[0].count(counts)  # recomputed: not inside a forward pass of the model
    reader.fetch()
    assert [chunk.counts(micro).arrays()[0].tolist() for micro in (0, 1)] == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.row(69)
@pytest.mark.parametrize("device", [False, True])
def test_row_069_negative_maxima_are_seen_and_each_step_starts_afresh(parts, device):
    model, chunk, reader = parts(device)
    for logits, more in (([-3.0, -7.0], [-5.0, -2.0]), ([-9.0, -9.0], [-9.5, -8.5])):
        chunk.begin_step()
        model(lambda layer, logits=logits: layer.attend(logits))
        model(lambda layer, more=more: layer.attend(more))
        reader.fetch()
        assert chunk.maxima().arrays()[0].tolist() == np.maximum(logits, more).tolist()


def test_a_layer_that_did_not_run_has_no_maximum(parts):
    model, chunk, reader = parts()
    chunk.begin_step()
    model(lambda layer: None)
    reader.fetch()
    assert chunk.maxima().arrays() == [None]


def test_at_a_step_between_nothing_is_read_and_the_next_one_is_right(parts):
    """Over the budget, counters and logits are measured at every other step."""
    model, chunk, reader = parts()
    chunk._pace.intervals.update(counters=2, logits=2)
    for step, counts in enumerate(([1, 2, 3], [7, 7, 7], [4, 5, 6])):
        chunk.begin_step()
        model(lambda layer, counts=counts: (layer.count(counts), layer.attend([-3.0, -float(sum(counts))])))
        reader.fetch()
        due = step % 2 == 0
        assert [each is not None for each in chunk.counts(0).arrays()] == [due]
        assert [each is not None for each in chunk.maxima().arrays()] == [due]
        if due:
            assert chunk.counts(0).arrays()[0].tolist() == counts
            assert chunk.maxima().arrays()[0].tolist() == [-3.0, -float(sum(counts))]
        chunk._pace.next_step()


def test_a_pass_in_an_evaluation_is_none_of_the_step(parts):
    model, chunk, reader = parts()
    chunk.begin_step()
    model.set_train(False)
    model(lambda layer: layer.count([7, 7, 7]))
    reader.fetch()
    assert chunk.passes == 0
