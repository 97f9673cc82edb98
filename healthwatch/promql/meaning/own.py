"""The functions of our own in full. The baseline of a sample are the finite samples of its series before it."""

from __future__ import annotations

from collections.abc import Mapping

from healthwatch.promql.meaning.entry import Meaning
from healthwatch.promql.training import MAD_SCALE, MIN_ROWS, RELATIVE_FLOOR, TRAINING

_WINDOW = (
    f"A range such as `grad_norm[50]`, in steps. Now is the series' sample in the selector's newest row; the baseline "
    f"is its finite samples before that, as far back as the window or {MIN_ROWS} rows, whichever is further. Of a "
    "subquery or `finite()` nothing outside the window counts."
)
_MIN_SAMPLES = "How many finite samples the baseline must have for a result; 1 at least."
_NEVER = "Fewer than `min_samples` in the baseline; no sample now; now is NaN"
_NAN = "In the baseline left out, infinities too. A NaN now is no data (`nonfinite` finds it); when now is +Inf, "
_SIGNED = "Metrics that may be negative, or that are 0 most of the time."
_TAILS = "Norms and other metrics with a heavy tail, unless a ratio and `for_records` stand beside it."


def _compared(
    name: str, sentence: str, formula: str, unit: str, none: str, now: str, not_for: str, example: str
) -> Meaning:
    """One that compares a sample with its baseline."""
    details = {
        "formula": formula,
        "window": _WINDOW,
        "min_samples": _MIN_SAMPLES,
        "unit": unit,
        "no value": f"{_NEVER}; {none}.",
        "NaN": now,
        "labels": "Those of the series, without the metric's name.",
        "not for": not_for,
    }
    usage = f"{name}(window, min_samples = {TRAINING[name].min_samples})"
    return Meaning(name, "own", usage, sentence, example, details)


def _plain(name: str, usage: str, sentence: str, example: str, details: Mapping[str, str]) -> Meaning:
    return Meaning(name, "own", usage, sentence, example, details)


OWN = (
    _compared(
        "spike_ratio",
        "How many times its own recent median a value is.",
        "now / median(baseline)",
        "None: a ratio, 1 is usual.",
        "the median is 0 or negative",
        f"{_NAN}the ratio is.",
        _SIGNED,
        "spike_ratio(grad_norm[50]) > 8",
    ),
    _compared(
        "robust_zscore",
        "How many robust standard deviations a value lies above (negative: below) its own recent median.",
        f"(now - median) / max({MAD_SCALE} * mad, {RELATIVE_FLOOR} * abs(median)), mad = median(abs(sample - median))",
        "None: standard deviations.",
        "the median and the median absolute deviation (mad) are both 0",
        f"{_NAN}the score is.",
        _TAILS,
        "robust_zscore(loss[128]) > 6",
    ),
    _compared(
        "zscore",
        "How many standard deviations a value lies above (negative: below) its own recent mean.",
        f"(now - mean) / max(sd, {RELATIVE_FLOOR} * abs(mean)), sd = population standard deviation of the baseline",
        "None: standard deviations.",
        "the mean and the deviation are both 0",
        f"{_NAN}the score is.",
        f"{_TAILS} One large sample in the baseline hides the next: `robust_zscore` does not mind it.",
        "zscore(loss[128]) > 6",
    ),
    _compared(
        "ema",
        "The recent mean of a series before its newest sample, in which newer samples weigh more.",
        "sum(weight * sample) / sum(weight); weight = (1 - a) ^ age in steps, a = 2 / (window + 1)",
        "That of the metric.",
        "the mean is not finite",
        "In the baseline left out, infinities too. A NaN now is no data; any other now does not change the mean.",
        "Metrics with rare large values: each of them lifts the mean for a while; a median does not mind it.",
        "loss > 1.5 * ema(loss[50])",
    ),
    _compared(
        "ema_ratio",
        "How many times its own recent exponential mean a value is.",
        "now / ema(window)",
        "None: a ratio, 1 is usual.",
        "the mean is 0 or negative",
        f"{_NAN}the ratio is.",
        _SIGNED,
        "ema_ratio(step_time[100]) > 1.5",
    ),
    _compared(
        "growth",
        "How many times its value at the beginning of the window a value is.",
        "now / oldest(baseline)",
        "None: a ratio, 1 is no growth.",
        "the oldest sample is 0 or negative, or not older than half the window",
        f"{_NAN}the ratio is.",
        f"{_SIGNED} Noise: one sample is compared with one; ask for `deriv(finite(...)) > 0` beside it.",
        "growth(max_attention_logit[500]) >= 2",
    ),
    _plain(
        "nonfinite",
        "nonfinite(vector)",
        "Keeps the elements that are NaN or infinite.",
        "nonfinite(micro_norm)",
        {
            "formula": "x where x is NaN, +Inf or -Inf",
            "vector": "Any vector: a selector, or an expression such as `loss / grad_norm`.",
            "unit": "That of the vector: NaN or infinity.",
            "no value": "Where every element is finite: the rule is clear. Where there is no sample: no data.",
            "NaN": "Is what it finds.",
            "labels": "All of them, the metric's name too.",
        },
    ),
    _plain(
        "finite",
        "finite(window)",
        "The range without its NaN and infinities: one of them would make an average, a slope or a sum NaN.",
        "avg_over_time(finite(loss[50])) > 1",
        {
            "formula": "the samples x of the window with abs(x) < Inf",
            "window": "A range such as `loss[50]`, in steps; so is the result, for any function that takes a range.",
            "unit": "That of the metric.",
            "no value": "A series without a finite sample in the window is left out.",
            "NaN": "Left out, infinities too.",
            "labels": "All of them, the metric's name too.",
        },
    ),
    _plain(
        "stalled_seconds",
        "stalled_seconds()",
        "Wall-clock seconds since the last step was recorded: a training that hangs takes no more steps.",
        "vector(stalled_seconds()) > 600",
        {
            "formula": "time of day - time of day of the last step record",
            "unit": "Seconds, the only ones in the language.",
            "no value": "Never: it is 0 while a step is evaluated, and rules with it are evaluated between steps too.",
            "NaN": "Never.",
            "labels": "None: it is a number; `vector()` makes a vector of it.",
        },
    ),
)
"""Those that compare a sample with its past first."""
