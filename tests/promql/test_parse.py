from __future__ import annotations

import re

import pytest

from healthwatch.promql import ast
from healthwatch.promql.parse import CODES, parse

STEP = 1_000_000
PART = re.compile(
    r'[=<>!~^%/]+( to compare)?|and|or|(by|ignoring) \(.*\)|\w+=".*"|, .*|\$\w+|.*([.]{3}|: one step is 1|, or ).*'
)
"""What help proposes that is not a whole expression."""
NO_NONE = "there is no None: absent(x) is 1 where nothing came, present_over_time(x[50]) where something did"
BETWEEN_VECTORS = "it stands behind the operator between two vectors, as in a > ignoring (e) group_left () 2 * b"
BACKSLASH = r"write \\ for a backslash, or put the string in backticks"


def tree(text: str, *, rule: bool = False, **params: float | str) -> ast.Expr:
    parsed = parse(text, params, rule=rule)
    assert parsed.expression is not None, parsed.problems
    return parsed.expression.tree


def problems(text: str, *, rule: bool = False) -> list[tuple[str, str]]:
    """Each problem's code and the text under its span."""
    parsed = parse(text, rule=rule)
    assert parsed.expression is None
    assert all(problem.code in CODES for problem in parsed.problems)
    return [(problem.code, text[problem.span[0] : problem.span[1]]) for problem in parsed.problems]


def shape(node: ast.Expr) -> str:
    """The tree with every operand in brackets."""
    match node:
        case ast.Number(value=value):
            return f"{value:g}"
        case ast.VectorSelector(metric=metric):
            return metric or "{}"
        case ast.Unary(expr=inner):
            return f"-[{shape(inner)}]"
        case ast.Binary(op=op, left=left, right=right):
            return f"[{shape(left)} {op} {shape(right)}]"
        case ast.Paren(expr=inner):
            return f"({shape(inner)})"
        case _:
            return type(node).__name__


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b * c ^ d", "[a + [b * [c ^ d]]]"),
        ("a - b - c", "[[a - b] - c]"),
        ("a ^ b ^ c", "[a ^ [b ^ c]]"),
        ("-a ^ b", "-[[a ^ b]]"),
        ("-a * b", "[-[a] * b]"),
        ("2 ^ -1 * 3", "[[2 ^ -1] * 3]"),
        ("a or b and c unless d", "[a or [[b and c] unless d]]"),
        ("a > b == c", "[[a > b] == c]"),
        ("a + b > c % d", "[[a + b] > [c % d]]"),
        ("a atan2 b / c", "[[a atan2 b] / c]"),
        ("+a - +1", "[a - 1]"),
        ("--a", "-[-[a]]"),
        ("(a + b) * c", "[([a + b]) * c]"),
        ("a AND b", "[a and b]"),
        ("and and or", "[and and or]"),
    ],
)
def test_precedence(text: str, expected: str) -> None:
    assert shape(tree(text)) == expected


def test_spans_stand_under_the_text_that_a_node_is() -> None:
    text = "max by (layer) ( finite_share{a='b'} * rate(x[50] offset 3) ) > bool  2"
    found = {type(node).__name__: text[node.span[0] : node.span[1]] for node in ast.walk(tree(text))}
    assert found["MatrixSelector"] == "x[50] offset 3"
    assert found["Call"] == "rate(x[50] offset 3)"
    assert found["Aggregate"] == "max by (layer) ( finite_share{a='b'} * rate(x[50] offset 3) )"
    assert found["Number"] == "2"
    selector = next(node for node in ast.walk(tree(text)) if isinstance(node, ast.VectorSelector))
    assert [text[m.span[0] : m.span[1]] for m in selector.matchers] == ["a='b'"]
    outermost = tree(text)
    assert isinstance(outermost, ast.Binary)
    assert text[outermost.op_span[0] : outermost.op_span[1]] == ">"
    assert outermost.bool_modifier


def test_windows_offsets_and_at_are_ticks() -> None:
    assert tree("x[50]") == ast.MatrixSelector(ast.VectorSelector("x", (), 0, None, (0, 1)), 50 * STEP, (0, 5))
    matrix = tree("x[1m30s] @ 2.5 offset -1h")
    assert isinstance(matrix, ast.MatrixSelector)
    assert matrix.window == 90 * STEP
    assert matrix.selector.offset == -3600 * STEP
    assert matrix.selector.at == ast.At(2_500_000, None)
    subquery = tree("(x)[100:5] @ end() offset 7")
    assert isinstance(subquery, ast.Subquery)
    assert (subquery.window, subquery.step, subquery.offset) == (100 * STEP, 5 * STEP, 7 * STEP)
    assert subquery.at == ast.At(None, "end")
    open_step = tree("x[100:]")
    assert isinstance(open_step, ast.Subquery)
    assert open_step.step is None


def test_at_before_the_first_step_is_kept() -> None:
    selector = tree("x @ -5")
    assert isinstance(selector, ast.VectorSelector)
    assert selector.at == ast.At(-5 * STEP, None)


def test_matchers_and_names() -> None:
    selector = tree('x{a="1",b!=\'2\',c=~`3.*`,"d e"!~"4",}')
    assert isinstance(selector, ast.VectorSelector)
    assert [(m.name, m.op, m.value) for m in selector.matchers] == [
        ("a", "=", "1"),
        ("b", "!=", "2"),
        ("c", "=~", "3.*"),
        ("d e", "!~", "4"),
    ]
    quoted = tree('{"loss ratio", a="1"}')
    assert isinstance(quoted, ast.VectorSelector)
    assert (quoted.metric, len(quoted.matchers)) == ("loss ratio", 1)


def test_joining() -> None:
    joined = tree("a / on (layer, rank) group_left (device) b")
    assert isinstance(joined, ast.Binary)
    assert joined.matching == ast.Matching(True, ("layer", "rank"), "left", ("device",))
    ignoring = tree("a > ignoring () b")
    assert isinstance(ignoring, ast.Binary)
    assert ignoring.matching == ast.Matching(False, (), None, ())


def test_grouping_may_stand_on_either_side() -> None:
    for text in ("sum without (rank) (x)", "SUM(x) without (rank)"):
        found = tree(text)
        assert isinstance(found, ast.Aggregate)
        assert (found.op, found.labels, found.without) == ("sum", ("rank",), True)
    top = tree("topk by (layer) (3, x)")
    assert isinstance(top, ast.Aggregate)
    assert isinstance(top.param, ast.Number)


def test_params_stand_for_values() -> None:
    text = "spike_ratio(x{split=$which}[$window], $least) > $ratio ^ 2"
    found = tree(text, rule=True, which="val", window=50, least=3, ratio=-8)
    matrix = next(node for node in ast.walk(found) if isinstance(node, ast.MatrixSelector))
    assert matrix.window == 50 * STEP
    assert matrix.selector.matchers[0].value == "val"
    assert isinstance(found, ast.Binary)
    assert shape(found.right) == "[-8 ^ 2]"
    assert text[found.right.span[0] : found.right.span[1]] == "$ratio ^ 2"


def test_an_undefined_param_hides_no_other_problem() -> None:
    assert problems("avg_over_time(x{a=~'('}[$w]) > $k + bogus(y)") == [
        ("HW110", "'('"),
        ("HW107", "$w"),
        ("HW107", "$k"),
        ("HW103", "bogus"),
    ]
    assert problems("x{split=$which} > 1") == [("HW107", "$which")]
    assert problems("rate(x[5m]) > $k", rule=True) == [("HW106", "5m"), ("HW107", "$k")]


def test_our_own_functions_are_known() -> None:
    tree("vector(stalled_seconds()) > 600", rule=True)
    tree("ema_ratio(x[50]) > 2 and zscore(x[128], 16) > 6 and robust_zscore(x[128]) > 6", rule=True)
    tree("growth(x[500]) >= 2 and deriv(finite(x[500])) > 0 and ema(x[8]) > 1", rule=True)
    tree("count without (expert) (nonfinite(x)) > 0", rule=True)


@pytest.mark.parametrize(
    ("text", "under"),
    [
        ("foo bar", "bar"),
        ("foo +", ""),
        ("sum(foo", ""),
        ("sum by (a) foo", "foo"),
        ("foo{a}", "}"),
        ("foo{a=b}", "b"),
        ("foo{,}", ","),
        ("foo{a='b' or c='d'}", "or"),
        ("x[a:]]", "a"),
        ("x[-5]", "-"),
        ("a on (b) c", "on"),
        ("a + on b", "b"),
        ("a + + ", ""),
        ("(a", ""),
        ("a))", ")"),
        ("abs(x,)", ")"),
        ("x offset", ""),
        ("x @ foo", "foo"),
        ("a = b", "="),
        ("", ""),
        ("  # nothing", ""),
        ("1 2", "2"),
        ("bool", "bool"),
    ],
)
def test_a_syntax_error_stands_at_the_first_token_that_can_not_follow(text: str, under: str) -> None:
    ((code, found),) = problems(text)
    assert (code, found) == ("HW109" if text == "x[a:]]" else "HW101", under)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("robust_zscor(x[5]) > 1", [("HW103", "robust_zscor")]),
        ("abs(1)", [("HW105", "1")]),
        ("rate(x)", [("HW105", "x")]),
        ("abs(x[5])", [("HW105", "x[5]")]),
        ("abs()", [("HW104", "abs")]),
        ("abs(x, y, z)", [("HW104", "y, z")]),
        ("label_join(x, 'a')", [("HW104", "label_join")]),
        ("time(1)", [("HW104", "1")]),
        ("topk(x)", [("HW104", "topk")]),
        ("sum(1, x)", [("HW104", "sum")]),
        ("topk(x, x)", [("HW105", "x")]),
        ("count_values(1, x)", [("HW105", "1")]),
        ("sum(x[5])", [("HW105", "x[5]")]),
        ("x + 'a'", [("HW105", "'a'")]),
        ("x and 1", [("HW105", "1")]),
        ("1 > 2", [("HW115", ">")]),
        ("x + bool y", [("HW115", "bool")]),
        ("x or on (a) group_left () y", [("HW115", "group_left")]),
        ("x + on (a) group_left (a) y", [("HW115", "a")]),
        ("x + on (a) 1", [("HW115", "+")]),
        ("-x[5]", [("HW105", "x[5]")]),
        ("x{a=~'('}", [("HW110", "'('")]),
        ("{}", [("HW111", "{}")]),
        ("{a='', b=~'.*', c!='x'}", [("HW111", "{a='', b=~'.*', c!='x'}")]),
        ("x{__name__='y'}", [("HW112", "__name__='y'")]),
        ("{'x', 'y'}", [("HW112", "'y'")]),
        (r'count_values("a\xc5z", x)', [("HW113", r'"a\xc5z"')]),
        ("label_replace(x, '', 'a', 'b', 'c')", [("HW113", "''")]),
        ("label_replace(x, 'a', 'b', 'c', ('('))", [("HW110", "'('")]),
        ("sum by (a:b) (x)", [("HW113", "a:b")]),
        ("x[0]", [("HW114", "0")]),
        ("x[5:0s]", [("HW114", "0s")]),
        ("x offset 1e30", [("HW114", "1e30")]),
        ("x offset 1 offset 2", [("HW118", "offset")]),
        ("x @ 1 @ 2", [("HW118", "@")]),
        ("x offset 1 [5]", [("HW118", "[")]),
        ("(x)[5]", [("HW118", "[5]")]),
        ("abs(x) offset 5", [("HW118", "offset")]),
        ("histogram_quantile(0.9, x)", [("HW109", "histogram_quantile")]),
        ("histogram_nonsense(x)", [("HW109", "histogram_nonsense")]),
        ("info(x)", [("HW109", "info")]),
        ("x[5] anchored", [("HW109", "anchored")]),
        ("a + fill(0) b", [("HW109", "fill")]),
        ("x[5m+1m]", [("HW109", "+")]),
        ("x offset (5)", [("HW109", "(")]),
        ("bogus(x) + rate(y) + abs(1)", [("HW103", "bogus"), ("HW105", "y"), ("HW105", "1")]),
    ],
)
def test_what_is_wrong_is_told_under_its_token(text: str, expected: list[tuple[str, str]]) -> None:
    assert problems(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("avg_over_time(x[5m]) > 1", [("HW106", "5m")]),
        ("x offset 10s > 2m", [("HW106", "10s"), ("HW106", "2m")]),
        ("x @ 5", [("HW108", "@ 5")]),
        ("x @ start()", [("HW108", "@ start()")]),
        ("x offset -5", [("HW108", "-5")]),
        ("x > start() + end() + range() + step()", [("HW108", name) for name in ("start", "end", "range", "step")]),
        ("x[5]", [("HW105", "x[5]")]),
        ("'text'", [("HW105", "'text'")]),
        ("x[5m] offset -1", [("HW105", "x[5m] offset -1"), ("HW106", "5m"), ("HW108", "-1")]),
    ],
)
def test_rules_refuse_units_and_looking_ahead(text: str, expected: list[tuple[str, str]]) -> None:
    assert problems(text, rule=True) == expected
    assert parse(text, rule=False).expression is not None


def test_help_says_what_to_write() -> None:
    def advice(text: str) -> str:
        return parse(text).problems[0].help

    assert advice("robust_zscor(x[5])") == 'did you mean "robust_zscore"?'
    assert advice("holt_winters(x[5], 1, 1)") == "write double_exponential_smoothing(x[5], 1, 1)"
    assert advice("abs(x[5])") == "leave out the window, or wrap it: avg_over_time(x[5])"
    assert advice("rate(x[5m])") == "write 300 for 300 steps"
    assert advice("abs()") == "abs(vector)"


@pytest.mark.parametrize(
    ("text", "code", "under", "help_"),
    [
        ("loss = 2", "HW101", "=", "write == to compare"),
        ("loss => 2", "HW101", "=", "write >="),
        ("loss <> 2", "HW101", ">", "write !="),
        ("loss === 2", "HW101", "=", "write =="),
        ('loss =~ "val.*"', "HW101", "=~", 'labels are compared within braces: loss{split=~"val.*"}'),
        ("a && b", "HW102", "&&", "write and"),
        ("a || b", "HW102", "||", "write or"),
        ("a | b", "HW102", "|", "write or"),
        ("!a", "HW102", "!", "there is no negation: turn the comparison round, or write ... unless ..."),
        ("a > 1 and not b", "HW101", "b", "there is no negation: turn the comparison round, or write ... unless ..."),
        ("x > $1", "HW102", "$", "the name of a parameter begins with a letter or _"),
        ("sum by layer (x)", "HW101", "layer", "write by (layer)"),
        ("sum by layer, expert (x)", "HW101", "layer", "write by (layer, expert)"),
        ("a / ignoring head b", "HW101", "head", "write ignoring (head)"),
        ("avg_over_time(x[5]) by (a)", "HW101", "by", "only an aggregation groups: max by (...) (...)"),
        ("x{param=attn}", "HW101", "attn", 'write param="attn"'),
        ("x{layer=3, head='1'}", "HW101", "3", 'write layer="3"'),
        ("x{param=}", "HW101", "}", 'write param="..."'),
        ("x{param=~.*attn.*, b='c'}", "HW102", ".*attn.*", "a label's value stands in quotes"),
        ("median(loss) > 1", "HW103", "median", "write quantile(0.5, loss)"),
        ("median_over_time(x[5])", "HW103", "median_over_time", "write quantile_over_time(0.5, x[5])"),
        ("mean_over_time(x[5])", "HW103", "mean_over_time", "write avg_over_time(x[5])"),
        ("median(x[5])", "HW103", "median", "write quantile_over_time(0.5, x[5])"),
        ("std(x[5:1])", "HW103", "std", "write stddev_over_time(x[5:1])"),
        ("percentile(95, x)", "HW103", "percentile", "write quantile(0.95, x)"),
        ("percentile_over_time(x[5], 0.9)", "HW103", "percentile_over_time", "write quantile_over_time(0.9, x[5])"),
        (
            "isnan(x) == 1",
            "HW103",
            "isnan",
            "write nonfinite(x)",
        ),
        ("len(x) > 3", "HW103", "len", "write count(x)"),
        ("last(x[5])", "HW103", "last", "write last_over_time(x[5])"),
        ("any(x > 3)", "HW103", "any", ""),
        ("exists(x)", "HW103", "exists", ""),
        ("spik_ratio(x[5])", "HW103", "spik_ratio", 'did you mean "spike_ratio"?'),
        ("mean(x)", "HW103", "mean", "write avg(x)"),
        ("mean by (a) (x)", "HW103", "mean", "write avg by (...) (...)"),
        ("median(x) by (a)", "HW103", "median", "write quantile by (...) (0.5, ...)"),
        ("std(x{a='b'})", "HW103", "std", "write stddev(x{a='b'})"),
        ("std_over_time(x[5])", "HW103", "std_over_time", "write stddev_over_time(x[5])"),
        ("percentile(99, x)", "HW103", "percentile", "write quantile(0.99, x)"),
        ("topk(metric, 3)", "HW105", "metric, 3", "write topk(3, metric)"),
        ("quantile by (a) (x, 0.9)", "HW105", "x, 0.9", "write quantile(0.9, x)"),
        ("count_values(x, 'a')", "HW105", "x, 'a'", "write count_values('a', x)"),
        ("quantile_over_time(x[50], 0.9)", "HW105", "x[50], 0.9", "write quantile_over_time(0.9, x[50])"),
        ("max(grad_norm[50])", "HW105", "grad_norm[50]", "write max_over_time(grad_norm[50])"),
        ("quantile(0.9, x[50])", "HW105", "x[50]", "write quantile_over_time(0.9, x[50])"),
        ("absent(x[50])", "HW105", "x[50]", "write absent_over_time(x[50])"),
        ("group(x[50])", "HW105", "x[50]", "leave out the window, or wrap it: avg_over_time(x[50])"),
        ("loss[50 steps]", "HW101", "steps", "write 50: one step is 1"),
        ("loss[50steps]", "HW102", "50steps", "write 50: one step is 1"),
        ("loss offset 10 steps", "HW101", "steps", "write 10: one step is 1"),
        (
            "max_over_time(a / b offset 10 [30:5])",
            "HW105",
            "b offset 10 [30:5]",
            "put what the window is of in parentheses: (a / b offset 10)[30:5]",
        ),
        (
            "histogram_quantile(0.9, x)",
            "HW109",
            "histogram_quantile",
            "a sample is one number, without buckets: write quantile(0.9, x), or quantile_over_time over a window",
        ),
        ("scalar(x) > 2", "HW115", ">", "write vector(scalar(x)) > 2, or > bool for 0 or 1"),
        ("info(x)", "HW109", "info", "join the labels: ... * on (...) group_left (...) ..."),
        ("x > 2 @ end()", "HW108", "@ end()", "a rule may look back: x offset 10"),
        ("max(x, 3) > 1", "HW104", "max", "write clamp_min(x, 3)"),
        ("min(3, x{a='b'})", "HW104", "min", "write clamp_max(x{a='b'}, 3)"),
        ("max(x > 1, y)", "HW104", "max", "write (x > 1) > y or y"),
        ("MIN(x, y)", "HW104", "MIN", "write x < y or y"),
        ("vector(max(3, 4))", "HW104", "max", "write max_of(3, 4)"),
        ("max by (layer) (x, 3)", "HW104", "max", "write max by (layer) (clamp_min(x, 3))"),
        ("min(x, 3) without (layer) > 1", "HW104", "min", "write min(clamp_max(x, 3)) without (layer)"),
        ("maximum(x, 3)", "HW103", "maximum", "write clamp_min(x, 3)"),
        ("max(x[50], 3)", "HW104", "max", "max(vector)"),
        ("sum(x, 3)", "HW104", "sum", "sum(vector)"),
        ("avg()", "HW104", "avg", "avg(vector)"),
        ("topk(x)", "HW104", "topk", "topk(k, vector)"),
        ("mean(x, y)", "HW103", "mean", "write avg(...)"),
        ("pow(x, 2) > 3", "HW103", "pow", "write x ^ 2"),
        ("pow(a / b, -2)", "HW103", "pow", "write (a / b) ^ (-2)"),
        ("x ** 2 > 3", "HW101", "*", "write ^"),
        ("x // 2", "HW101", "/", "write floor(... / ...)"),
        ("x mod 2", "HW101", "mod", "write %"),
        ("loss in (1, 2)", "HW101", "in", "write loss == 1 or loss == 2"),
        ("loss not in (1, 2)", "HW101", "not", "write loss != 1 and loss != 2"),
        ("loss in", "HW101", "in", ""),
        ("param in ('a', 'b')", "HW101", "in", 'labels are compared within braces: loss{param=~"a|b"}'),
        ("param not in ('a', 'b')", "HW101", "not", 'labels are compared within braces: loss{param!~"a|b"}'),
        ("param in ('a+', 'b')", "HW101", "in", 'labels are compared within braces: loss{param=~"...|..."}'),
        ("x is NaN", "HW101", "is", "write nonfinite(x)"),
        ("x is not nan", "HW101", "is", "write x unless nonfinite(x)"),
        ("x is 3", "HW101", "is", "write =="),
        ("x > 1,000", "HW101", ",", "write 1000"),
        ("x > 12,000,000 and y", "HW101", ",", "write 12000000"),
        ("x > 0,5", "HW101", ",", "write 0.5"),
        ("x > 1, 000", "HW101", ",", ""),
        ("x =< 3", "HW101", "=", "write <="),
        ("x[label='v'] > 3", "HW101", "label", "labels stand in braces: x{label='v'}"),
        ("x[a=v, b=~'3'][50]", "HW101", "a", "labels stand in braces: x{a=\"v\", b=~'3'}"),
        ("x{a='b'}[c='d']", "HW101", "c", "labels stand in braces: {c='d'}"),
        (r'label_replace(x, "a", "\1", "b", "(.*)")', "HW102", r'"\1"', 'write "$1"'),
        (
            r"label_replace(abs(x{a='b', c='d'}), 'a', 'l\1_x\2', 'b', '(.)(.)')",
            "HW102",
            r"'l\1_x\2'",
            "write 'l${1}_x$2'",
        ),
        (
            r'label_replace(label_replace(x, "a", "\\\1", "b", ""), "a", "", "b", "")',
            "HW102",
            r'"\\\1"',
            r'write "\\$1"',
        ),
        (r'label_replace(x, "a", "$1", "b", "(.)\1")', "HW102", r'"(.)\1"', BACKSLASH),
        (r'label_replace(x, "a", "\1\d", "b", "(.*)")', "HW102", r'"\1\d"', BACKSLASH),
        (r'x{a=~"\d"}', "HW102", r'"\d"', BACKSLASH),
        ('x{a ~ "b"}', "HW102", "~", "write =~"),
        ('x{a ~= "b"}', "HW102", "~=", "write =~"),
        ('x{a!=~"b"}', "HW102", "~", "write !~"),
        ('x{a==~"b"}', "HW102", "~", "write =~"),
        ('x{a=!"b"}', "HW102", "!", "write !="),
        ('x{a="b" && c="d"}', "HW102", "&&", "write , between matchers"),
        ('x{a="b" and c="d"}', "HW101", "and", "write , between matchers"),
        ('x{a == "b"}', "HW101", "==", "write ="),
        ('x{a <> "b"}', "HW101", "<", "write !="),
        ('x{a: "b"}', "HW101", ":", "write ="),
        ('x{a is "b"}', "HW101", "is", "write ="),
        ("x{layer > 3}", "HW101", ">", 'a label\'s value is a text: name those that fit, as in layer=~"4|5|6"'),
        ("x > ${ratio}", "HW102", "$", "write $ratio"),
        ("x > $(ratio)", "HW102", "$", "write $ratio"),
        ("x[${window}]", "HW102", "$", "write $window"),
        ("x{a=${which}}", "HW102", "${which", "write $which"),
        ("x =! 2", "HW102", "!", "write !="),
        ("spike_ratio(x[50], min_samples=3) > 3", "HW101", "=", "write 3: arguments have no names"),
        ("quantile_over_time(q = 0.9, x[50])", "HW101", "=", "write 0.9: arguments have no names"),
        ("topk(k=3, x)", "HW101", "=", "write 3: arguments have no names"),
        ("avg_over_time(window=x[50])", "HW101", "=", "write x[50]: arguments have no names"),
        ("topk(3, x = 2)", "HW101", "=", "write == to compare"),
        ("count(x = 2)", "HW101", "=", "write == to compare"),
        ("a / b is NaN", "HW101", "is", "write nonfinite(a / b)"),
        ("a > 1 and on (l) b is NaN", "HW101", "is", "write nonfinite(...)"),
        ("x in (-1, 2)", "HW101", "in", "write x == -1 or x == 2"),
        ("x is None", "HW101", "is", NO_NONE),
        ("x is not None", "HW101", "is", NO_NONE),
        ("a > 1 and x is not null", "HW101", "is", NO_NONE),
        ("max(tokens_per_expert, layer) > 100", "HW104", "max", "write max by (layer) (tokens_per_expert)"),
        ("avg(tokens_per_expert, layer, rank)", "HW104", "avg", "write avg by (layer, rank) (tokens_per_expert)"),
        ("quantile(0.9, x{a='b'}, layer)", "HW104", "quantile", "write quantile by (layer) (0.9, x{a='b'})"),
        ("mean(x, layer)", "HW103", "mean", "write avg by (layer) (x)"),
        ("max(loss, layer{a='b'})", "HW104", "max", "write loss > layer{a='b'} or layer{a='b'}"),
        ("max(loss, lr)", "HW104", "max", "write loss > lr or lr"),
        ("loss[1h30m] > 3", "HW105", "loss[1h30m]", "leave out the window, or wrap it: avg_over_time(loss[5400])"),
        (
            "x{a='5m'}[5m] > 3",
            "HW105",
            "x{a='5m'}[5m]",
            "leave out the window, or wrap it: avg_over_time(x{a='5m'}[300])",
        ),
        ("max(x[5m] offset 10s)", "HW105", "x[5m] offset 10s", "write max_over_time(x[300] offset 10)"),
        ("abs((a)[1m:30s])", "HW105", "(a)[1m:30s]", "leave out the window, or wrap it: avg_over_time((a)[60:30])"),
        ("avg_over_time(loss, 50) > 3", "HW105", "loss, 50", "write avg_over_time(loss[50])"),
        (
            "quantile_over_time(0.9, x{a='b'}, 100)",
            "HW105",
            "x{a='b'}, 100",
            "write quantile_over_time(0.9, x{a='b'}[100])",
        ),
        ("spike_ratio(x, 50) > 3", "HW105", "x, 50", "write spike_ratio(x[50])"),
        ("spike_ratio(x, 50, 3) > 3", "HW105", "x, 50", "write spike_ratio(x[50], 3)"),
        ("ema(x, 0.9)", "HW105", "x", "give it a window in steps: x[50], or a subquery: (...)[50:]"),
        ("predict_linear(x, 50)", "HW105", "x", "give it a window in steps: x[50], or a subquery: (...)[50:]"),
        ("a > 2 * ignoring (e) group_left () avg without (e) (a)", "HW115", "*", BETWEEN_VECTORS),
        ("x > 100 by (layer)", "HW101", "by", "only an aggregation groups: max by (...) (...)"),
        ("count(x) > 5%", "HW101", "", "write 0.05: % is the remainder"),
        ("count(x) > 2.5% * count(y)", "HW101", "*", "write 0.025: % is the remainder"),
        ("x > 800% and y > 3", "HW101", "y", "write 8: % is the remainder"),
        ("p99(x[100])", "HW103", "p99", "write quantile_over_time(0.99, x[100])"),
        ("p5(x)", "HW103", "p5", "write quantile(0.05, x)"),
        ("p1(x)", "HW103", "p1", "write quantile(0.01, x)"),
        ("np.max(x[50])", "HW102", ".", "write max_over_time(x[50])"),
        ("np.sum(x)", "HW102", ".", "write sum(x)"),
        ("p999_over_time(x[9])", "HW103", "p999_over_time", "write quantile_over_time(0.999, x[9])"),
        (f"p{'9' * 5000}(x)", "HW103", f"p{'9' * 5000}", ""),
        ("p100(x)", "HW103", "p100", "write quantile(1, x)"),
        ("mad(x[50])", "HW103", "mad", "write mad_over_time(x[50])"),
        ("mad(x)", "HW103", "mad", "write mad_over_time(x[50])"),
        ("first(x[5])", "HW103", "first", "write first_over_time(x[5])"),
        ("last(x{a='b'})", "HW103", "last", "write last_over_time(x{a='b'}[50])"),
        ("rolling_mean(loss, 100)", "HW103", "rolling_mean", "write avg_over_time(loss[100])"),
        ("ewma(loss, 20)", "HW103", "ewma", "write ema(loss[20])"),
        ("x - prev(x) > 1", "HW103", "prev", "write x offset 1"),
        ("lag(x{a='b'}, 3)", "HW103", "lag", "write x{a='b'} offset 3"),
        ("lag(a / b, 3)", "HW103", "lag", "write ... offset 3"),
        ("x > 2 * x.shift(100)", "HW102", ".", "write x offset 100"),
        ("x{a='b'}.shift(100)", "HW102", ".", "write ... offset 100"),
        ("x.mean() > 3", "HW102", ".", "write avg(x)"),
        ("np.mean(x[50])", "HW102", ".", "write avg_over_time(x[50])"),
        ("np.percentile(x[100], 99)", "HW102", ".", "write quantile_over_time(0.99, x[100])"),
        ("math.isnan(x)", "HW102", ".", "write nonfinite(x)"),
        ("np.abs(x)", "HW102", ".", "write abs(x)"),
        ("sum(x) group by (l, m) > 3", "HW101", "group", "write by (l, m)"),
        ("x > 3 for 5", "HW101", "for", "for is a key of the rule, beside expr"),
    ],
)
def test_words_of_other_languages_are_told_once_with_what_to_write(
    text: str, code: str, under: str, help_: str
) -> None:
    (problem,) = parse(text).problems
    assert (problem.code, text[slice(*problem.span)], problem.help) == (code, under, help_)
    whole = re.sub("^(write|labels .* braces:) |: arguments have no names$|: % is the remainder$", "", help_)
    if whole != help_ and not PART.fullmatch(whole):
        assert parse(whole, rule=False).expression is not None


@pytest.mark.parametrize(
    "text", ["if x > 3", "x > 3 ? 1 : 0", "x > 3 if y > 2 else 4", "if(x > 3, 1, 0)", "x > 3 then y"]
)
def test_there_is_no_if(text: str) -> None:
    (problem,) = parse(text).problems
    assert problem.help.startswith("there is no if: x > 3 ")
    assert " (a and x > 3) or b is a where x > 3" in problem.help
    assert parse("(a and x > 3) or b").expression is not None


def test_swapped_and_superfluous_arguments_hide_nothing_inside_and_cost_nothing_deep_down() -> None:
    assert problems("quantile_over_time(bogus(x), y, 50)") == [("HW103", "bogus"), ("HW105", "y, 50")]
    assert problems("topk(bogus(x) + y, 3)") == [("HW103", "bogus"), ("HW105", "bogus(x) + y, 3")]
    deep = "topk(x, 3)"
    for _ in range(60):
        deep = f"topk({deep}, 3)"
    assert len(parse(deep).problems) == 61


def test_metrics_may_be_called_like_keywords() -> None:
    for name in ("sum", "by", "offset", "start", "end", "and", "anchored", "fill", "abs", "without"):
        assert shape(tree(f"{name} + 1")) == f"[{name} + 1]"


@pytest.mark.parametrize("text", ["(" * 5000, "-" * 5000 + "1", "(" * 5000 + "1" + ")" * 5000, "x[1:]" + "[1:]" * 5000])
def test_deep_nesting_is_refused(text: str) -> None:
    assert [problem.code for problem in parse(text).problems] == ["HW116"]


def test_a_long_chain_is_refused() -> None:
    for operator in ("+", "or"):
        (problem,) = parse(f" {operator} ".join("x" * 3000)).problems
        assert problem.code == "HW116"
        assert problem.message.endswith("and so is each operator of a chain")
    assert parse(" + ".join("x" * 90)).expression is not None
