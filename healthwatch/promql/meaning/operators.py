"""Aggregations, operators and what modifies them, a selector or a join."""

from __future__ import annotations

from healthwatch.promql.meaning.entry import entries

AGGREGATIONS = tuple(
    entries(
        "aggregation",
        """
avg(vector): The mean of each group; one NaN makes it NaN.
    avg without (expert) (tokens_per_expert)
bottomk(k, vector): The `k` smallest elements of each group, with all their labels; a NaN is taken last.
    bottomk by (layer) (2, tokens_per_expert)
count(vector): How many elements each group has; a group without any has no result, not 0.
    count by (layer) (tokens_per_expert == 0)
count_values("label", vector): For every value in a group how many elements have it; the value stands in the new label.
    count_values("scale", loss_scale)
group(vector): 1 for each group: which there are.
    group by (layer) (tokens_per_expert)
limit_ratio(share, vector): About that share of the elements, by a hash of their labels; -0.9 takes what 0.1 leaves.
    limit_ratio(0.9, micro_norm)
limitk(k, vector): `k` elements of each group, whichever come first.
    limitk(3, micro_norm)
max(vector): The largest value of each group; NaN only if there is no other.
    max by (layer) (max_attention_logit)
min(vector): The smallest value of each group; NaN only if there is no other.
    min by (layer) (tokens_per_expert)
quantile(share, vector): The value below which that share (0 to 1) of each group lies; 0.5 is the median.
    quantile by (layer) (0.5, tokens_per_expert)
stddev(vector): The population standard deviation of each group; one NaN makes it NaN.
    stddev by (layer) (tokens_per_expert)
stdvar(vector): The population variance of each group; one NaN makes it NaN.
    stdvar by (layer) (tokens_per_expert)
sum(vector): The sum of each group; one NaN makes it NaN.
    sum by (layer) (tokens_per_expert)
topk(k, vector): The `k` largest elements of each group, with all their labels; a NaN is taken last.
    topk by (layer) (2, tokens_per_expert)
""",
    )
)

OPERATORS = tuple(
    entries(
        "operator",
        """
+ := left + right: The sum of the two sides; elements find each other by equal labels.
    loss + 1
- := left - right: The difference of the two sides; before one operand, its sign: `-loss`.
    loss - loss offset 10
* := left * right: The product of the two sides.
    2 * loss
/ := left / right: The quotient; x / 0 is infinite, 0 / 0 is NaN.
    grad_norm / loss
% := left % right: The remainder of the division, with the sign of the left side.
    loss % 2
^ := left ^ right: Left to the power of right; it binds tightest, and from the right: 2 ^ 3 ^ 2 is 512.
    loss ^ 2
atan2 := left atan2 right: The angle in radians of the point (right, left).
    loss atan2 grad_norm
== := left == right: Keeps the left elements that equal the right side, with their values; a NaN equals nothing.
    overflow == 1
!= := left != right: Keeps the left elements that differ from the right side. In braces: a label is not exactly a text.
    loss_scale != loss_scale offset 1
> := left > right: Keeps the left elements above the right side, with their values; a NaN is no data.
    loss > 2
< := left < right: Keeps the left elements below the right side, with their values; a NaN is no data.
    loss < 100
>= := left >= right: Keeps the left elements that are at least the right side; a NaN is no data.
    loss >= 2
<= := left <= right: Keeps the left elements that are at most the right side; a NaN is no data.
    loss <= 100
and := left and right: Keeps the left elements for which the right side has one with the same labels.
    loss > 2 and grad_norm > 0
or := left or right: All left elements, and those on the right whose labels no left one has.
    loss > 2 or grad_norm > 100
unless := left unless right: Keeps the left elements for which the right side has none with the same labels.
    loss > 2 unless evaluating == 1
= := metric{label="text"}: In braces: the label is exactly this text; an empty text stands for a missing label.
    micro_norm{param="layers.0.attn.wq"}
=~ := metric{label=~"regex"}: In braces: the regular expression (RE2) matches the whole label.
    micro_norm{param=~".*attn.*"}
!~ := metric{label!~"regex"}: In braces: the regular expression (RE2) does not match the whole label.
    micro_norm{param!~".*attn.*"}
""",
    )
)

MODIFIERS = tuple(
    entries(
        "modifier",
        """
by := sum by (label, ...) (vector): Groups by these labels; the result has no others.
    sum by (layer) (tokens_per_expert)
without := sum without (label, ...) (vector): Groups by all labels but these: keeps rank and whatever else comes apart.
    sum without (expert) (tokens_per_expert)
on := left / on (label, ...) right: Elements find each other by these labels alone.
    loss / on () grad_norm
ignoring := left / ignoring (label, ...) right: Elements find each other by all labels but these.
    tokens_per_expert / ignoring (expert) group_left () sum without (expert) (tokens_per_expert)
group_left := left / on (label) group_left (label) right: Many elements share one on the right and take `label` of it.
    micro_norm / on () group_left () grad_norm
group_right := left / on (label) group_right (label) right: Many elements share one on the left and take `label` of it.
    grad_norm / on () group_right () micro_norm
bool := left > bool right: Gives 1 where the comparison holds and 0 where it does not, instead of leaving elements out.
    loss > bool 2
offset := selector offset steps: The samples of so many steps ago; a negative one looks ahead, which a rule must not.
    loss > 0.5 * loss offset 20
@ := selector @ step: The samples of a fixed step, of start() or of end().
    loss @ 30
[window] := selector[window]: A range: each series' samples of the last so many steps, (now - window, now].
    max_over_time(loss[50])
[window:step] := (vector)[window:step]: A subquery: an expression's results over a window, every `step` steps (1).
    max_over_time((loss / loss offset 1)[50:5])
""",
    )
)
