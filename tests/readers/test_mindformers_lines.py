"""Lines of the trainer and of the reference, one by one, and what breaks them."""

from __future__ import annotations

import math
from datetime import datetime
from traceback import format_exc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_reading import CONSOLE, FILE, frames_of, samples

from healthwatch.readers import Options
from healthwatch.readers.mindformers import CUT, FORMAT, recognises
from healthwatch.stream import SeriesTable, tick_of

STEP_LINE = (
    "{ step:[   40/   40], consumed_samples: 80, global_batch_size: 2, loss:   2.288770, per_step_time:    194ms, "
    "lr: 5.000000e-03, grad_norm:   1.681723, throughput:   0.25T }"
)
MOE_LINE = (
    "{ step:[    1/    6], consumed_samples: 2, global_batch_size: 2, loss:   4.165188, per_step_time:    898ms, "
    "load_balancing_loss:   1.000801, indexer_loss:   0.500000, mtp_1_loss:   1.248728, mtp_2_loss:   1.300000, "
    "lr: 1.000000e-04, grad_norm:        nan, throughput:   0.00T }"
)
OLD_LINE = (
    "{ step:[    1/   40], loss:   4.171362, per_step_time:    258ms, lr: 5.000000e-03, grad_norm:   1.507340, "
    "throughput:   0.00T }"
)
OTHER_STAGE = (
    "{ step:[    1/    2], consumed_samples: None, global_batch_size: None, loss: N/A (non-last PP stage, refer to "
    "last stage for real loss), per_step_time:      7ms, grad_norm: NaN }"
)

BY_ITSELF = ("attempt_step", "run_failed")


def one(*messages: str, options: Options = Options()) -> dict:
    """The samples of the only frame, by metric, labels and tick."""
    frames = frames_of((FILE + message + "\n" for message in messages), options)
    assert len(frames) == 1
    return {(metric, labels, tick): value for (_, _, tick, metric, labels), value in samples(frames)[0].items()}


def scalars(found: dict) -> dict[str, float]:
    return {metric: value for (metric, labels, _), value in found.items() if not labels and metric not in BY_ITSELF}


def test_step_line_in_the_units_of_the_catalogue():
    assert scalars(one(STEP_LINE)) == pytest.approx(
        {
            "consumed_samples": 80,
            "global_batch_size": 2,
            "loss": 2.28877,
            "step_time": 0.194,
            "lr": 0.005,
            "grad_norm": 1.681723,
            "throughput": 0.25e12,
        }
    )


def test_step_line_of_2_0_0_has_no_sample_counts():
    assert set(scalars(one(OLD_LINE))) == {"loss", "step_time", "lr", "grad_norm", "throughput"}


def test_auxiliary_losses_and_nan():
    found = one(MOE_LINE)
    assert found["mtp_loss", (("mtp_idx", "0"),), tick_of(1)] == pytest.approx(1.248728)
    assert found["mtp_loss", (("mtp_idx", "1"),), tick_of(1)] == pytest.approx(1.3)
    assert scalars(found)["load_balancing_loss"] == pytest.approx(1.000801)
    assert scalars(found)["indexer_loss"] == 0.5
    assert math.isnan(scalars(found)["grad_norm"])


def test_what_another_pipeline_stage_has_is_absent_not_nan():
    assert scalars(one(OTHER_STAGE)) == {"step_time": 0.007}


@pytest.mark.parametrize("loss", ["inf", "-inf", "nan"])
def test_losses_that_are_no_number(loss: str):
    value = scalars(one(STEP_LINE.replace("  2.288770", f"{loss:>10}")))["loss"]
    assert value == float(loss) or (math.isnan(value) and loss == "nan")


def test_norms_take_step_and_micro_step_from_the_header_before_them():
    found = one(
        '{ "step": 6, "micro_step": 1 }',
        '{ "local_norm": embedding.word_embeddings.weight:   0.527685 }',
        '{ "step": 6, "micro_step": 2 }',
        '{ "local_norm": embedding.word_embeddings.weight:  12.500000 }',
        '{ "step": 6 }',
        '{ "device_norm": output_layer.weight:        inf }',
    )
    embedding, output = (("param", "embedding.word_embeddings.weight"),), (("param", "output_layer.weight"),)
    assert found["local_norm", embedding, tick_of(6, 0, 2)] == 0.527685
    assert found["local_norm", embedding, tick_of(6, 1, 2)] == 12.5
    assert found["device_norm", output, tick_of(6)] == math.inf


def test_losses_as_json():
    found = one(
        '{"step": 12, "micro_step": 1, "local_loss": NaN}',
        '{"step": 12, "micro_step": 2, "local_loss": 4.162559509277344}',
        '{"step": 12, "micro_step": 2, "device_loss": 4.5}',
    )
    assert math.isnan(found["local_loss", (), tick_of(12, 0, 2)])
    assert found["local_loss", (), tick_of(12, 1, 2)] == 4.162559509277344
    assert found["device_loss", (), tick_of(12)] == 4.5


@pytest.mark.row(36)
def test_row_036_a_loss_without_a_step_belongs_to_the_one_under_way():
    found = one(STEP_LINE, '{ "micro_step": 2, "local_loss": 0.123 }')
    assert found["local_loss", (), tick_of(40, 1, 2)] == 0.123


@pytest.mark.row(63)
@pytest.mark.parametrize("counts", ["[[32, 32, 0, 0]]", "[32, 32, 0, 0]"])
def test_row_063_counts_nested_or_not(counts: str):
    line = '{"iter": 12, "step": 6, "micro_step": 2, "block": "decoder", "layer": 2, "tpe": ' + counts + "}"
    found = one(line, options=Options(top_k=2))
    layer = (("block", "decoder"), ("layer", "2"))
    for expert, count in enumerate((32, 32, 0, 0)):
        labels = (("block", "decoder"), ("expert", str(expert)), ("layer", "2"))
        assert found["tokens_per_expert", labels, tick_of(6, 1, 2)] == count
    assert found["router_topk", layer, tick_of(6)] == 2


def test_mtp_layer_0_is_not_decoder_layer_0():
    found = one(
        '{"iter": 1, "step": 1, "micro_step": 1, "block": "decoder", "layer": 0, "tpe": [[1, 2]]}',
        '{"iter": 1, "step": 1, "micro_step": 1, "block": "mtp", "mtp_idx": 0, "layer": 0, "tpe": [[3, 4]]}',
    )
    mtp = (("block", "mtp"), ("expert", "1"), ("layer", "0"), ("mtp_idx", "0"))
    decoder = (("block", "decoder"), ("expert", "1"), ("layer", "0"))
    assert (found["tokens_per_expert", mtp, tick_of(1)], found["tokens_per_expert", decoder, tick_of(1)]) == (4, 2)


def test_logits_by_head_and_no_metric_for_their_mean_and_maximum():
    path = "decoder.layers.0.self_attention.core_attention.max_logits_val"
    found = one(
        f"step:[    1/    3] max_attention_logit/{path}: [2.522, -2.103, 1.175e+04, nan]",
        "step:[    1/    3] max_attention_logit/mean: 2.345",
        "step:[    1/    3] max_attention_logit/max: 1.175e+04",
    )
    heads = [
        found["max_attention_logit", (("block", "decoder"), ("head", str(head)), ("layer", "0")), tick_of(1)]
        for head in range(4)
    ]
    assert heads[:3] == [2.522, -2.103, 11750]
    assert math.isnan(heads[3])
    assert {metric for metric, *_ in found} == {"max_attention_logit", *BY_ITSELF}


def test_top_k_of_the_configuration_the_log_shows():
    tokens = '{"iter": 2, "step": 1, "micro_step": 2, "block": "decoder", "layer": 1, "tpe": [[9, 19, 15, 21]]}'
    found = one('  "num_experts_per_tok": 2,', tokens)
    assert found["router_topk", (("block", "decoder"), ("layer", "1")), tick_of(1)] == 2
    found = one('  "num_experts_per_tok": 2,', tokens, options=Options(top_k=4))
    assert found["router_topk", (("block", "decoder"), ("layer", "1")), tick_of(1)] == 4
    assert not any(metric == "router_topk" for metric, *_ in one(tokens))


def test_every_micro_step_counts_whether_or_not_it_is_printed():
    found = one(
        "Calculate global_batch_size=8, num_accumulation_steps=4.",
        '{"iter": 2, "step": 1, "micro_step": 2, "block": "decoder", "layer": 1, "tpe": [[9, 19]]}',
    )
    assert {tick for metric, _, tick in found if metric == "tokens_per_expert"} == {tick_of(1, 1, 4)}


@pytest.mark.parametrize("prefix", [FILE, CONSOLE, "", "INFO:healthwatch:", "[rank 3] 2026-11-29T19:00:29.868 "])
def test_only_the_message_counts_whatever_stands_before_it(prefix: str):
    (frame,) = frames_of([prefix + STEP_LINE])
    assert frame.step == 40
    expected = datetime(2026, 11, 29, 19, 0, 29, 868000).timestamp() if "2026" in prefix else 0.0
    assert frame.time == pytest.approx(expected)


def test_a_step_is_over_when_the_next_one_says_something():
    reader = FORMAT.open(SeriesTable(), Options())
    assert not reader.feed(STEP_LINE)
    assert not reader.feed('{"step": 40, "micro_step": 1, "local_loss": 1.5}')
    (frame,) = reader.feed('{ "step": 41, "micro_step": 1 }')
    assert frame.step == 40
    assert not reader.feed('{"step": 40, "micro_step": 1, "device_loss": 1.5}')
    assert [frame.step for frame in reader.finish()] == [41]
    assert reader.passed.late == 1


def at_step(step: int) -> str:
    return STEP_LINE.replace("   40/", f"{step:5d}/")


def attempts(*lines: str) -> list[tuple[int, int]]:
    return [(frame.attempt, frame.step) for frame in frames_of(lines)]


def test_a_training_that_starts_again_is_the_next_attempt():
    start = FILE + "Start training loop..."
    found = attempts(start, start, at_step(1), at_step(2), start, start, at_step(2), at_step(3))
    assert found == [(1, 1), (1, 2), (2, 2), (2, 3)]


def test_a_log_that_goes_back_is_the_next_attempt():
    assert attempts(*map(at_step, (8, 9, 10, 5, 6))) == [(1, 8), (1, 9), (1, 10), (2, 5), (2, 6)]


def test_steps_since_the_start_of_the_attempt():
    frames = frames_of(map(at_step, (8, 9, 5, 6, 9)))
    found = [value for each in samples(frames) for key, value in each.items() if key[3] == "attempt_step"]
    assert found == [1, 2, 1, 2, 5]


def traceback() -> list[str]:
    try:
        {}["weights"]
    except KeyError:
        return format_exc().splitlines(keepends=True)
    raise AssertionError


def failures(*lines: str) -> list[tuple[int, int, float]]:
    keys = [(key, value) for each in samples(frames_of(lines)) for key, value in each.items()]
    return [(key[1], key[0], value) for key, value in keys if key[3] == "run_failed"]


def test_a_traceback_that_no_step_follows_is_the_end_of_a_training():
    start = FILE + "Start training loop..."
    assert failures(start, at_step(1), at_step(2)) == [(1, 1, 0)]
    assert failures(start, at_step(1), at_step(2), *traceback()) == [(1, 1, 0), (1, 3, 1)]
    assert failures(start, at_step(1), FILE + traceback()[0], *traceback()[1:], at_step(2)) == [(1, 1, 0)]
    assert failures(start, *traceback()) == [(1, 1, 1)]
    again = [start, at_step(8), *traceback(), start, *traceback(), start, at_step(8), at_step(9)]
    assert failures(*again) == [(1, 8, 0), (1, 9, 1), (2, 9, 1), (3, 8, 0)]


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_ends_of_lines(end: str):
    assert samples(frames_of([FILE + STEP_LINE + end])) == samples(frames_of([FILE + STEP_LINE]))


WHOLE = [
    STEP_LINE,
    '{"step": 40, "micro_step": 1, "local_loss": 4.25}',
    '{ "step": 40, "micro_step": 1 }',
    '{ "local_norm": decoder.layers.0.mlp.linear_fc1.weight:   0.527685 }',
    '{"iter": 12, "step": 40, "micro_step": 1, "block": "decoder", "layer": 2, "tpe": [[32, 32, 0, 0]]}',
    "step:[   40/   40] max_attention_logit/decoder.layers.0.core_attention.max_logits_val: [2.522, 2.103]",
]


SHOWS_ITS_KIND = 40  # characters; a line of which less is left might be anybody's


@given(st.sampled_from(WHOLE), st.data())
def test_a_line_that_was_cut_off_says_nothing(message: str, data: st.DataObject):
    kept = data.draw(st.integers(0, len(message) - 2))
    reader = FORMAT.open(SeriesTable(), Options())
    reader.feed('{ "step": 40, "micro_step": 1 }')
    reader.feed(FILE + message[:kept])
    found = [key[3] for each in samples(list(reader.finish())) for key in each]
    assert found == ["run_failed", "attempt_step"]
    assert reader.passed.unreadable == 1 or kept < SHOWS_ITS_KIND


@given(st.sampled_from(WHOLE), st.sampled_from(WHOLE))
def test_two_writers_on_one_line(first: str, second: str):
    together = frames_of([FILE + '{ "step": 40, "micro_step": 1 }', FILE + first + CONSOLE + second])
    apart = frames_of([FILE + '{ "step": 40, "micro_step": 1 }', FILE + first, CONSOLE + second])
    if "max_attention_logit" not in first + second:
        assert samples(together) == samples(apart)


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\r\n"), max_size=40), max_size=8))
def test_lines_of_others_change_nothing(noise: list[str]):
    lines = [FILE + message for message in WHOLE]
    mixed = [line for pair in zip(lines, noise + [""] * len(lines), strict=False) for line in pair]
    assert samples(frames_of(mixed)) == samples(frames_of(lines))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"step": 3, "micro_step": 1, "local_loss": "high"}', "not a number: 'high'"),
        ('{"step": "three", "micro_step": 1}', "not a number: 'three'"),
        ('{"step": 3, "micro_step": 1, "block": "decoder", "layer": 1, "tpe": ["a"]}', "not a number: 'a'"),
        ('{"step": 3, "tpe": [[1]]}', 'no key "block"'),
        ('{"step": 3, "tpe": ' + "[" * 100_000 + "}", "nested too deeply"),
        ('{"step": 3, "tpe": [1 2]}', "no JSON from column 23 on: Expecting ',' delimiter"),
        ('{ "local_norm": some.weight: 1.0 }', "a record that names no step, before any that does"),
        ('{ "step": 3, "micro_step": 1 }x{ "local_norm": some.weight: 1.0.0 }', "not a number: '1.0.0'"),
        ("{ step:[    3/   20], loss: 2.5, grad_norm: 1.2.3 }", "not a number: '1.2.3'"),
        ("{ step:[    3/   20], per_step_time: 194parsecs }", "not a number: '194parsecs'"),
        ("step:[    3/   20] max_attention_logit/decoder.layers.0: [2.5, high]", "not a number: ' high'"),
        ("step:[    3/   20] max_attention_logit/decoder.layers.0: [2.5", CUT),
        ("{ step:[    3/   20], loss: 2.5", CUT),
        ('{"step": 12, "loss": 2.5}', "another writer's line"),
    ],
)
def test_what_can_not_be_read_is_counted_and_why(line: str, reason: str):
    reader = FORMAT.open(SeriesTable(), Options())
    reader.feed("nothing")
    reader.feed(line)
    assert (reader.passed.unreadable, reader.passed.reasons) == (1, {reason: 2})


def test_recognised_by_a_record_or_by_the_trainers_name():
    assert recognises(FILE + STEP_LINE)
    assert recognises(
        "[INFO] 2026-11-29 18:59:02,450 [mindformers/pynative/trainer/trainer.py:487] _init_config: Current"
    )
    assert recognises(WHOLE[-1])
    assert not recognises('step 12: loss 4.5\n{"loss": 3}')


def test_another_trainers_lines_are_refused_instead_of_read_as_steps_without_a_sample():
    """What has no loss for us must not look like a run in which nothing happened."""
    assert not recognises('{"step": 1, "loss": 2.0}\n{"step": 2, "loss": NaN}\n{"iter": 3, "lr": 0.1}\n')
    assert recognises('{"step": 1, "loss": 2.0}\n{ "step": 1, "micro_step": 1 }\n')
