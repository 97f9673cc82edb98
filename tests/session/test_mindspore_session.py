"""The two lines in a loop, with a real MindSpore model."""

from __future__ import annotations

import pytest

from healthwatch.recording import Run

mindspore = pytest.importorskip("mindspore", reason="needs the mindspore extra")


@pytest.mark.mindspore
def test_a_mindspore_model_is_recognised_watched_and_let_go(open_session, tmp_path):
    from mindspore import nn, ops

    mindspore.runtime.launch_blocking()
    net = nn.Dense(4, 2)
    optimizer = nn.SGD(net.trainable_params(), learning_rate=0.1)
    data = ops.ones((3, 4))
    forward = mindspore.value_and_grad(lambda x: (net(x) ** 2).mean(), None, net.trainable_params())
    hw = open_session().attach(net, optimizer)
    for _ in range(3):
        loss, grads = forward(data)
        hw.micro_step(loss, grads)
        optimizer(grads)
        hw.step(loss)
    hw.close()
    assert not [part for part in hw.guard.failures if not part.endswith("no data")]
    with Run.open(tmp_path / "output") as run:
        metrics = [{column.series.metric for column in frame.columns} for frame in run.frames()]
    assert len(metrics) == 3
    assert metrics[0] >= {"micro_norm", "local_norm", "local_loss", "loss", "grad_norm", "lr", "step_time"}
