"""Every function of the language with its types, one a line: `?` may be left out, `...` may be repeated or left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from healthwatch.promql.ast import ValueType

_PROMETHEUS = """
abs(vector) vector
absent(vector) vector
absent_over_time(matrix) vector
acos(vector) vector
acosh(vector) vector
asin(vector) vector
asinh(vector) vector
atan(vector) vector
atanh(vector) vector
avg_over_time(matrix) vector
ceil(vector) vector
changes(matrix) vector
clamp(vector, scalar, scalar) vector
clamp_max(vector, scalar) vector
clamp_min(vector, scalar) vector
cos(vector) vector
cosh(vector) vector
count_over_time(matrix) vector
day_of_month(vector?) vector
day_of_week(vector?) vector
day_of_year(vector?) vector
days_in_month(vector?) vector
deg(vector) vector
delta(matrix) vector
deriv(matrix) vector
double_exponential_smoothing(matrix, scalar, scalar) vector
end() scalar
exp(vector) vector
first_over_time(matrix) vector
floor(vector) vector
hour(vector?) vector
idelta(matrix) vector
increase(matrix) vector
irate(matrix) vector
label_join(vector, string, string, string...) vector
label_replace(vector, string, string, string, string) vector
last_over_time(matrix) vector
ln(vector) vector
log10(vector) vector
log2(vector) vector
mad_over_time(matrix) vector
max_of(scalar, scalar) scalar
max_over_time(matrix) vector
min_of(scalar, scalar) scalar
min_over_time(matrix) vector
minute(vector?) vector
month(vector?) vector
pi() scalar
predict_linear(matrix, scalar) vector
present_over_time(matrix) vector
quantile_over_time(scalar, matrix) vector
rad(vector) vector
range() scalar
rate(matrix) vector
resets(matrix) vector
round(vector, scalar?) vector
scalar(vector) scalar
sgn(vector) vector
sin(vector) vector
sinh(vector) vector
sort(vector) vector
sort_by_label(vector, string...) vector
sort_by_label_desc(vector, string...) vector
sort_desc(vector) vector
sqrt(vector) vector
start() scalar
stddev_over_time(matrix) vector
stdvar_over_time(matrix) vector
step() scalar
sum_over_time(matrix) vector
tan(vector) vector
tanh(vector) vector
time() scalar
timestamp(vector) vector
ts_of_first_over_time(matrix) vector
ts_of_last_over_time(matrix) vector
ts_of_max_over_time(matrix) vector
ts_of_min_over_time(matrix) vector
vector(scalar) vector
year(vector?) vector
"""

_TRAINING = """
ema(matrix, scalar?) vector
ema_ratio(matrix, scalar?) vector
finite(matrix) matrix
growth(matrix, scalar?) vector
nonfinite(vector) vector
robust_zscore(matrix, scalar?) vector
spike_ratio(matrix, scalar?) vector
stalled_seconds() scalar
zscore(matrix, scalar?) vector
"""


@dataclass(frozen=True, slots=True)
class Signature:
    """`most` is None where the last argument may be repeated."""

    name: str
    args: tuple[ValueType, ...]
    least: int
    most: int | None
    result: ValueType

    def type_of(self, position: int) -> ValueType:
        return self.args[min(position, len(self.args) - 1)]


def _signature(line: str) -> Signature:
    name, _, rest = line.partition("(")
    inner, _, result = rest.partition(") ")
    written = [arg for arg in inner.split(", ") if arg]
    args = tuple(_value_type(arg.rstrip("?.")) for arg in written)
    repeated = inner.endswith("...")
    least = sum(not arg.endswith(("?", "...")) for arg in written)
    return Signature(name, args, least, None if repeated else len(args), _value_type(result))


def _value_type(word: str) -> ValueType:
    types: dict[str, ValueType] = {"scalar": "scalar", "string": "string", "vector": "vector", "matrix": "matrix"}
    return types[word]


def _table(lines: str) -> Mapping[str, Signature]:
    return {signature.name: signature for signature in map(_signature, lines.split("\n")[1:-1])}


TRAINING = _table(_TRAINING)
"""Our own functions, by name."""

FUNCTIONS: Mapping[str, Signature] = {**_table(_PROMETHEUS), **TRAINING}
"""Whatever can be called, by name."""
