"""YAML with positions: what is wrong is a diagnostic, and every character has its place."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from healthwatch import yamlfile
from healthwatch.diagnostics import Diagnostic
from healthwatch.yamlfile import Document, number_hint, reader
from healthwatch.yamlfile.scalars import offsets


def parse(text: str | bytes) -> Document:
    return yamlfile.parse(text.encode() if isinstance(text, str) else text, "f.yaml")


def only(document: Document) -> Diagnostic:
    (found,) = document.diagnostics
    return found


def place(found: Diagnostic) -> tuple[int, int]:
    assert found.span is not None
    return found.span.line, found.span.column


BROKEN = {
    "tab": ("a:\n\tb: 1\n", "HW003", (2, 1), "a tab can't indent YAML"),
    "second colon": ("a: b: c\n", "HW003", (1, 5), "a second ':' can't stand here"),
    "one space too many": ("a: 1\n b: 2\n", "HW003", (2, 3), "a second ':' can't stand here"),
    "list and mapping": ("a:\n  - x\n b: 1\n", "HW003", (3, 2), "the indentation does not fit the lines above"),
    "open bracket": ("a: [1, 2\nb: 3\n", "HW003", (1, 4), "this quote or bracket is never closed"),
    "template without quotes": (
        "a: {{ $value }} is high\n",
        "HW003",
        (1, 4),
        "a text that begins with {{ must be quoted",
    ),
    "a quote in quotes": ("a: 'it's high'\nb: 2\n", "HW003", (1, 7), "this ' ends the quoted text"),
    "a quote in quotes in braces": ('{a: 1, b: "5"th"}\n', "HW003", (1, 13), 'this " ends the quoted text'),
    "an expression in braces": (
        'a:\n  - expr: {p="a"} > 2\n',
        "HW003",
        (2, 11),
        "an expression that begins with { must be quoted",
    ),
    "an expression in braces in braces": (
        "{a: 1, expr: {p=~'a.*', q!=\"b\"} * 2}\n",
        "HW003",
        (1, 14),
        "an expression that begins with { must be quoted",
    ),
    "a range of braces": ('a: {p="a"}[50]\n', "HW003", (1, 4), "an expression that begins with { must be quoted"),
    "half a text in quotes": ('a: "x" > 2\n', "HW003", (1, 4), "the quoted text ends before its line does"),
    "a block on its own line": ("a: | b\n", "HW003", (1, 6), "nothing can follow the > or | here"),
    "no name behind an asterisk": ("a: * b\n", "HW003", (1, 5), "a name must follow the * or & here"),
    "an unknown escape": ('a: "\\d+"\n', "HW003", (1, 5), "this \\ begins no escape that YAML knows"),
    "a colon in braces": ("{a: x: y, b: z}\n", "HW003", (1, 6), "a second ':' can't stand here"),
    "a list beside its key": ("a: - b\n", "HW003", (1, 4), "a list can't begin beside its key"),
    "open quote": ("a: 'x\n", "HW003", (1, 4), "this quote or bracket is never closed"),
    "backtick": ("a: `x`\n", "HW003", (1, 4), "this character can't start a value"),
    "unknown alias": ("a: *x\n", "HW003", (1, 4), "no anchor (&name) stands before this alias"),
    "two documents": ("a: 1\n---\nb: 2\n", "HW003", (2, 1), "a second document starts here"),
    "alias to itself": ("a: &x [*x]\n", "HW003", (1, 4), "this alias refers to what it stands in"),
    "merge of a number": ("a: {<<: 3}\n", "HW003", (1, 5), "<< needs a mapping, or a list of mappings"),
    "control character": ("a: \x07\n", "HW003", (1, 4), "YAML does not allow the character U+0007"),
    "deep nesting": ("[" * 3000, "HW003", (1, 1001), "brackets are nested too deeply"),
    "duplicate key": ("a: 1\nb: 2\na: 3\n", "HW004", (3, 1), 'duplicate key "a"'),
    "duplicate key below": ("x:\n  - a: 1\n    a: 2\n", "HW004", (3, 5), 'duplicate key "a"'),
    "on": ("on: 1\n", "HW005", (1, 1), "YAML reads the key on as true"),
    "off": ("x: {off: 1}\n", "HW005", (1, 5), "YAML reads the key off as false"),
    "number as a key": ("12: 1\n", "HW005", (1, 1), "YAML reads the key 12 as a number"),
    "list as a key": ("? [a]\n: 1\n", "HW005", (1, 3), "a key must be text"),
    "octal": ("a: 010\n", "HW006", (1, 4), "YAML reads 010 as 8"),
    "base 60": ("a: 1:30\n", "HW006", (1, 4), "YAML reads 1:30 as 90"),
    "hexadecimal": ("a: 0x10\n", "HW006", (1, 4), "YAML reads 0x10 as 16"),
    "underscore": ("a: 1_000\n", "HW006", (1, 4), "YAML reads 1_000 as 1000"),
    "tag": ("a: !env X\n", "HW006", (1, 4), "the tag !env has no meaning here"),
    "impossible tag": ("a: !!int x\n", "HW006", (1, 4), "can't read 'x' as a number"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_one_mistake_one_problem(name: str) -> None:
    text, code, where, message = BROKEN[name]
    found = only(parse(text))
    assert (found.code, place(found), found.message) == (code, where, message)


def test_an_expression_in_braces_is_told_how_to_be_quoted() -> None:
    assert only(parse('expr: {p="a"} > 2\n')).help == "put single quotes around all of it: '{p=\"a\"} ...'"
    assert only(parse("a: {{ $value }} x\n")).help == 'put quotes around it: "{{ $value }} is high"'


def test_duplicate_key_names_the_first_line() -> None:
    assert only(parse("a: 1\nb: 2\na: 3\n")).label == "first on line 1"


def test_an_override_of_a_merged_key_is_no_duplicate() -> None:
    document = parse("base: &b {metric: x, above: 5}\none: {<<: *b, above: 50}\ntwo: {<<: [*b, {above: 1, n: 2}]}\n")
    assert document.diagnostics == ()
    assert document.data["one"] == {"metric": "x", "above": 50}
    assert document.data["two"] == {"metric": "x", "above": 5, "n": 2}


def test_aliases_that_explode_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert any("expand to too much" in found.message for found in parse("\n".join(lines)).diagnostics)


@pytest.mark.parametrize(
    ("raw", "code", "message"),
    [
        (b"a: \xe9t\xe9\n", "HW002", "the byte 0xE9 is not UTF-8"),
        ("a: 1\n".encode("utf-16"), "HW002", "this file is UTF-16"),
    ],
)
def test_other_encodings(raw: bytes, code: str, message: str) -> None:
    found = only(parse(raw))
    assert (found.code, found.message, found.help) == (code, message, "save it as UTF-8")


def test_a_byte_order_mark_moves_no_column() -> None:
    document = parse(b"\xef\xbb\xbfon: 1")
    assert place(only(document)) == (1, 1)


def test_windows_line_ends() -> None:
    document = parse("a: 1\r\nb: 2\r\nb: 3\r\n")
    found = only(document)
    assert place(found) == (3, 1)
    assert found.source == "b: 3"


def test_files_that_can_not_be_read(tmp_path: Path) -> None:
    assert only(yamlfile.load(tmp_path / "no.yaml")).message == "there is no such file"
    assert only(yamlfile.load(tmp_path)).message == "this is a folder, not a file"
    assert only(yamlfile.load("a\0b")).code == "HW001"
    assert only(yamlfile.load(tmp_path / "no.yaml", "shown")).span.file == "shown"  # type: ignore[union-attr]


def test_an_empty_file_is_no_problem_of_yaml() -> None:
    for text in ("", "# nothing\n", "---\n"):
        document = parse(text)
        assert document.data is None
        assert document.diagnostics == ()


def test_values_as_yaml_has_them() -> None:
    document = parse("a: yes\nb: null\nc: 1.5e+3\nd: 1e-3\ne: '1'\nf: 2024-01-01\ng: .inf\nh: -7\n")
    assert document.data == {
        "a": True, "b": None, "c": 1500.0, "d": "1e-3", "e": "1", "f": "2024-01-01", "g": float("inf"), "h": -7,
    }  # fmt: skip


def test_spans_of_keys_and_values() -> None:
    document = parse('groups:\n  - name: g\n    损失: "x y"\n    empty:\n    list: [1, 22]\n')
    spans = {
        ("groups", 0, "name"): ((2, 5, 9), (2, 11, 12)),
        ("groups", 0, "损失"): ((3, 5, 7), (3, 9, 14)),
        ("groups", 0, "empty"): ((4, 5, 10), (4, 5, 10)),
        ("groups", 0, "list", 1): ((5, 15, 17), (5, 15, 17)),
        ("groups", 0, "list"): ((5, 5, 9), (5, 11, 18)),
        ("groups", 0): ((2, 5, 12), (2, 5, 12)),
        ("groups", 0, "absent"): ((2, 5, 12), (2, 5, 12)),
    }
    for path, (key, value) in spans.items():
        found = document.key_span(path), document.value_span(path)
        assert [(s.line, s.column, s.end_column) for s in found] == [key, value], path


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("1e-3", "1.0e-3"),
        ("5e6", "5.0e+6"),
        ("1.5e3", "1.5e+3"),
        ("-2E-4", "-2.0e-4"),
        ("x", ""),
        ("1.", ""),
        ("e3", ""),
    ],
)
def test_number_hints(text: str, hint: str) -> None:
    assert number_hint(text) == hint
    if hint:
        assert isinstance(yaml.safe_load(text), str)
        assert yaml.safe_load(hint) == float(text)


STYLES = {
    "plain": "e: sum(foo)\n  > bar\n",
    "single": "e: 'it''s (foo)\n\n   > bar'\n",
    "double": 'e: "a\\tb \\\n   foo \\u4e2d bar"\n',
    "literal": "e: |\n  foo\n    > bar\n\n  baz\n",
    "literal kept": "e: |2+\n    foo\n   > bar\n\n",
    "folded": "e: >-\n  foo\n  > bar\n\n  baz\n    more\n",
}


@pytest.mark.parametrize("style", STYLES)
def test_each_character_of_a_text_has_its_place(style: str) -> None:
    document = parse(STYLES[style])
    value = document.data["e"]
    escapes = {"中": "\\u4e2d", "'": "''"}
    for start, character in enumerate(value):
        if character.isspace():
            continue
        span = document.text_span(("e",), start, start + 1)
        written = document.text.line(span.line)[span.column - 1 : span.end_column - 1]
        assert written == escapes.get(character, character), (start, character)


def test_a_place_over_two_lines_ends_with_the_first() -> None:
    document = parse("e: |\n  foo +\n  bar\n")
    span = document.text_span(("e",), 0, 9)
    assert (span.line, span.column, span.end_column) == (2, 3, 8)


@given(
    st.text(alphabet=" \n\tab'\"\\#:-中é[]{}", min_size=1, max_size=60),
    st.sampled_from(["'", '"', "|", ">", None]),
    st.integers(5, 40),
)
@settings(max_examples=300)
def test_offsets_find_the_same_characters(value: str, style: str | None, width: int) -> None:
    text = yaml.dump({"key": value}, default_style=style, width=width, allow_unicode=True)
    document = parse(text)
    (node,) = [place.value for path, place in document.places.items() if path[-1:] == ("key",)]
    assert document.data == {"key": value}
    written = document.text.text[node.start_mark.index : node.end_mark.index]
    found = offsets(written, node.value, node.style)
    assert len(found) == len(value)
    assert [start for start, _ in found] == sorted(start for start, _ in found)
    for (start, end), character in zip(found, value, strict=True):
        if not character.isspace() and written[start : start + 1] != "\\":
            assert written[start:end].removesuffix(character) in ("", character)
            assert written[start] == character


@given(st.binary(max_size=200))
def test_bytes_never_raise(raw: bytes) -> None:
    document = parse(raw)
    assert document.data is None or not any(found.code == "HW002" for found in document.diagnostics)


@given(st.text(alphabet="ab:-?[]{}&*!|>'\"%@`#,<\n \t0123.~", max_size=60))
@settings(max_examples=500)
def test_text_of_yaml_signs_never_raises(text: str) -> None:
    document = parse(text)
    for found in document.diagnostics:
        assert found.span is not None
        assert 1 <= found.span.line <= len(document.text.lines)
        assert 1 <= found.span.column <= len(document.text.line(found.span.line)) + 1
        assert found.span.end_column > found.span.column


@pytest.mark.parametrize("name", [name for name in BROKEN if name != "deep nesting"])
def test_without_libyaml_the_same_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_LOADER", yaml.SafeLoader)
    text, code, where, message = BROKEN[name]
    found = only(parse(text))
    assert (found.code, place(found), found.message) == (code, where, message)
