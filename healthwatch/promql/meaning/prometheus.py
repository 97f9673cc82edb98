"""The functions that PromQL has, on the step axis: where Prometheus counts seconds, these count steps."""

from __future__ import annotations

from healthwatch.promql.meaning.entry import entries

FUNCTIONS = tuple(
    entries(
        "function",
        """
abs(vector): The value without its sign.
    abs(max_attention_logit)
absent(vector): 1 if the vector is empty, nothing if it is not; the labels are those that the selector's `=` fixes.
    absent(qk_clip_threshold)
absent_over_time(window): 1 if no series has a sample in the window, nothing if one has.
    absent_over_time(qk_clip_threshold[50])
acos(vector): The angle in radians whose cosine is the value; NaN outside -1 to 1.
    acos(vector(0.5))
acosh(vector): The inverse of cosh; NaN below 1.
    acosh(loss)
asin(vector): The angle in radians whose sine is the value; NaN outside -1 to 1.
    asin(vector(0.5))
asinh(vector): The inverse of sinh: nearly linear around 0, logarithmic far from it, defined for every sign.
    asinh(max_attention_logit)
atan(vector): The angle in radians whose tangent is the value.
    atan(loss)
atanh(vector): The inverse of tanh; NaN outside -1 to 1.
    atanh(vector(0.5))
avg_over_time(window): The mean of each series' samples in the window; one NaN makes it NaN.
    avg_over_time(finite(loss[50]))
ceil(vector): The value rounded up to a whole number.
    ceil(loss)
changes(window): How many times the value differs from that of the sample before; two NaN are equal.
    changes(loss_scale[200])
clamp(vector, low, high): The value, but at least `low` and at most `high`; nothing if `low` is above `high`.
    clamp(loss, 0, 10)
clamp_max(vector, high): The value, but at most `high`.
    clamp_max(loss, 10)
clamp_min(vector, low): The value, but at least `low`: a divisor that can't be 0.
    grad_norm / clamp_min(loss, 0.01)
cos(vector): The cosine of an angle in radians.
    cos(loss)
cosh(vector): The hyperbolic cosine.
    cosh(loss)
count_over_time(window): How many samples each series has in the window, NaN included.
    count_over_time(micro_norm[50])
day_of_month(vector = vector(time())): The day of the month, 1 to 31, of a Unix time in seconds (UTC).
    day_of_month(vector(1700000000))
day_of_week(vector = vector(time())): The weekday of a Unix time in seconds (UTC): 0 is Sunday, 6 Saturday.
    day_of_week(vector(1700000000))
day_of_year(vector = vector(time())): The day of the year, 1 to 366, of a Unix time in seconds (UTC).
    day_of_year(vector(1700000000))
days_in_month(vector = vector(time())): How many days the month of a Unix time in seconds (UTC) has.
    days_in_month(vector(1700000000))
deg(vector): Degrees of an angle in radians.
    deg(vector(pi()))
delta(window): Last sample minus first, carried on to the borders of the window; for levels.
    delta(loss[50])
deriv(window): The slope of the least-squares line, per step; needs two samples, and one NaN makes it NaN.
    deriv(finite(loss[500]))
double_exponential_smoothing(window, level, trend): Holt's smoothing (once `holt_winters`), factors 0 to 1.
    double_exponential_smoothing(loss[50], 0.5, 0.1)
end(): The last step of the evaluated range.
    vector(end())
exp(vector): The exponential, e to the power of the value: the perplexity of a loss.
    exp(loss)
first_over_time(window): The oldest sample in the window; keeps the metric's name.
    first_over_time(loss[50])
floor(vector): The value rounded down to a whole number.
    floor(loss)
hour(vector = vector(time())): The hour, 0 to 23, of a Unix time in seconds (UTC).
    hour(vector(1700000000))
idelta(window): Last sample minus the one before it.
    idelta(loss[50])
increase(window): How much a counter grew, carried on to the borders of the window; a fall counts as a restart from 0.
    increase(consumed_samples[100])
irate(window): How much a counter grew per step between its last two samples; a fall counts as a restart from 0.
    irate(consumed_samples[100])
label_join(vector, target, separator, label...): Sets the label `target` to the values of labels, joined.
    label_join(tokens_per_expert, "place", "/", "block", "layer")
label_replace(vector, target, replacement, label, regex): Sets `target` where regex matches `label`; $1 is a group.
    label_replace(micro_norm, "layer", "$1", "param", ".*layers[.]([0-9]+)[.].*")
last_over_time(window): The newest sample in the window; keeps the metric's name.
    last_over_time(loss[50])
ln(vector): The natural logarithm; NaN below 0, -Inf at 0.
    ln(loss)
log10(vector): The logarithm to base 10; NaN below 0, -Inf at 0.
    log10(grad_norm)
log2(vector): The logarithm to base 2; NaN below 0, -Inf at 0.
    log2(loss_scale)
mad_over_time(window): The median distance of the samples from their median; one NaN makes it NaN.
    mad_over_time(loss[50])
max_of(a, b): The larger of two numbers.
    loss > max_of(2, 1.5)
max_over_time(window): The largest sample in the window; NaN only if there is no other.
    max_over_time(loss[50])
min_of(a, b): The smaller of two numbers.
    loss > min_of(2, 1.5)
min_over_time(window): The smallest sample in the window; NaN only if there is no other.
    min_over_time(loss[50])
minute(vector = vector(time())): The minute, 0 to 59, of a Unix time in seconds (UTC).
    minute(vector(1700000000))
month(vector = vector(time())): The month, 1 to 12, of a Unix time in seconds (UTC).
    month(vector(1700000000))
pi(): The number 3.14159...
    vector(2 * pi())
predict_linear(window, steps): What the least-squares line says `steps` steps from now; needs two samples.
    predict_linear(finite(loss[500]), 1000)
present_over_time(window): 1 for every series that has a sample in the window.
    present_over_time(micro_norm[50])
quantile_over_time(share, window): The value below which that share (0 to 1) of the samples lies; 0.5 is the median.
    quantile_over_time(0.99, step_time[200])
rad(vector): Radians of an angle in degrees.
    rad(vector(180))
range(): The length of the evaluated range, in steps.
    vector(range())
rate(window): How much a counter grew per step, as `increase` says, over the window.
    rate(consumed_samples[100])
resets(window): How many times a counter fell.
    resets(attempt_step[500])
round(vector, to = 1): The nearest multiple of `to`, halves upwards.
    round(loss, 0.01)
scalar(vector): The value of the vector's only element as a number; NaN if it has none or several.
    micro_norm > 2 * scalar(grad_norm)
sgn(vector): 1 above 0, -1 below 0, 0 at 0; NaN stays.
    sgn(deriv(finite(loss[50])))
sin(vector): The sine of an angle in radians.
    sin(loss)
sinh(vector): The hyperbolic sine.
    sinh(loss)
sort(vector): The elements by value, smallest first, NaN last.
    sort(micro_norm)
sort_by_label(vector, label...): The elements by the values of labels; numbers in them sort by size.
    sort_by_label(tokens_per_expert, "layer", "expert")
sort_by_label_desc(vector, label...): The elements by the values of labels, backwards.
    sort_by_label_desc(tokens_per_expert, "layer", "expert")
sort_desc(vector): The elements by value, largest first, NaN last.
    sort_desc(micro_norm)
sqrt(vector): The square root; NaN below 0.
    sqrt(grad_norm)
start(): The first step of the evaluated range.
    vector(start())
stddev_over_time(window): The population standard deviation of the samples; one NaN makes it NaN.
    stddev_over_time(finite(loss[50]))
stdvar_over_time(window): The population variance of the samples; one NaN makes it NaN.
    stdvar_over_time(finite(loss[50]))
step(): The distance between two evaluations of the evaluated range, in steps.
    vector(step())
sum_over_time(window): The sum of each series' samples in the window; one NaN makes it NaN.
    sum_over_time(tokens_per_expert[50])
tan(vector): The tangent of an angle in radians.
    tan(loss)
tanh(vector): The hyperbolic tangent: between -1 and 1.
    tanh(loss)
time(): The step that is evaluated; within a step, a fraction. Not the time of day.
    loss > 5 and on () vector(time()) > 100
timestamp(vector): The step of each sample of a selector; of any other expression, the step that is evaluated.
    timestamp(loss)
ts_of_first_over_time(window): The step of the oldest sample in the window.
    ts_of_first_over_time(loss[50])
ts_of_last_over_time(window): The step of the newest sample in the window.
    ts_of_last_over_time(loss[50])
ts_of_max_over_time(window): The step of the largest sample in the window, the last one of several.
    ts_of_max_over_time(loss[50])
ts_of_min_over_time(window): The step of the smallest sample in the window, the last one of several.
    ts_of_min_over_time(loss[50])
vector(number): A number as a vector of one element without labels.
    vector(1)
year(vector = vector(time())): The year of a Unix time in seconds (UTC).
    year(vector(1700000000))
""",
    )
)
