"""JSON Schema findings as diagnostics: each under the exact key or value that is wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import yaml

from healthwatch import resources
from healthwatch.diagnostics import Diagnostic, indent_deeper, suggest
from healthwatch.rulefile.keys import meant, stands_for
from healthwatch.yamlfile import Document, KeyPath, Problem, concealed, number_hint

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

Found: TypeAlias = tuple[KeyPath, Diagnostic]
Explanation: TypeAlias = tuple[str, str, str]  # code, message, help
Refused: TypeAlias = Mapping[str, tuple[str, str]]  # a key that is known but can't be used: why, and what to do instead

_SHORT = 60  # characters of a value that help repeats

_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
}


@cache
def schema(name: str) -> Mapping[str, Any]:
    """A shipped schema: `rules` or `config`."""
    loaded: Mapping[str, Any] = json.loads(resources.read_text(f"schemas/{name}.schema.json"))
    return loaded


@dataclass(frozen=True, slots=True)
class _Failure:
    """What one keyword of the schema refuses: `bound` is the keyword's own value."""

    path: KeyPath
    keyword: str
    bound: Any
    value: Any
    schema: Mapping[str, Any]
    message: str
    fits: Callable[[Any], bool]  # whether something else would do in this place

    @classmethod
    def of(cls, error: ValidationError, validator: Validator) -> _Failure:
        keyword = "propertyNames" if "propertyNames" in error.absolute_schema_path else str(error.validator)
        described: Any = error.schema
        path = tuple(error.absolute_path)
        fits = validator.evolve(schema=described).is_valid
        return cls(path, keyword, error.validator_value, error.instance, described, error.message, fits)

    @property
    def form(self) -> str:
        """What a value of this place is called in a message: `duration`. Titles are for editors."""
        return str(self.schema.get("form", ""))

    @property
    def kind(self) -> str:
        """Its form; what stands below `override` has none, and is named by its rule."""
        return "override" if self.path[-2:-1] == ("override",) else self.form

    @property
    def description(self) -> str:
        """What the form means; only something that has one is described in a message."""
        return str(self.schema.get("description", "")) if self.form else ""

    @property
    def properties(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.schema.get("properties", {})
        return found

    @property
    def place(self) -> str:
        return self.form or (f'"{self.path[-1]}"' if self.path else "the file")


def findings(document: Document, name: str, refused: Refused | None = None) -> list[Problem]:
    """Everything in the document that its schema does not allow, with the path of the key that is wrong.

    A key that YAML does not read as text has been told already, and is no unknown key.
    """
    told = {problem.path for problem in document.problems if problem.diagnostic.code == "HW005"}
    return [
        Problem(path, found)
        for error in _validator(name).iter_errors(document.data)
        for path, found in _diagnostics(document, _Failure.of(error, _validator(name)), refused or {})
        if found.code != "HW007" or path not in told
    ]


def readable(document: Document, broken: Sequence[Problem]) -> list[Problem]:
    """The document's own problems, but for keys that no quotes would mend: their names are `broken` as they are."""
    names = {problem.path for problem in broken if problem.diagnostic.code == "HW010"}
    return [each for each in document.problems if each.diagnostic.code != "HW005" or each.path not in names]


@cache
def _validator(name: str) -> Validator:
    from jsonschema import Draft202012Validator, validators

    checker = Draft202012Validator.TYPE_CHECKER.redefine_many(
        {
            "integer": lambda _checker, value: isinstance(value, int) and not isinstance(value, bool),
            "number": lambda _checker, value: _is_finite_number(value),
        }
    )
    extend: Any = validators.extend  # its stub has no types
    validator: Validator = extend(Draft202012Validator, type_checker=checker)(schema(name))
    return validator


def _is_finite_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _diagnostics(document: Document, failure: _Failure, refused: Refused) -> Iterator[Found]:
    path = failure.path
    if failure.keyword == "propertyNames":
        path = (*path, failure.value)
        mend = f"a {failure.form} has a-z, A-Z, 0-9 and _, and begins with no digit"
        yield path, document.at_key("HW010", f'"{failure.value}" is not a {failure.form}', path, help=mend)
    elif failure.keyword == "additionalProperties":
        for key in failure.value:
            if key not in failure.properties:
                yield (*path, key), _unknown_key(document, key, failure, refused)
    elif failure.keyword == "required":
        yield from _missing_keys(document, failure, refused)
    else:
        code, message, mend = _EXPLAIN.get(failure.keyword, _other)(document, failure)
        yield path, document.at_value(code, message, path, help=mend)


def _unknown_key(document: Document, key: str, failure: _Failure, refused: Refused) -> Diagnostic:
    path = (*failure.path, key)
    if key in refused:
        why, instead = refused[key]
        return document.at_key("HW017", why, path, help=instead)
    mend = indent_deeper(failure.value, key) or meant(key, failure.value[key], failure.kind)
    mend = mend or suggest(key, failure.properties, "known keys")
    return document.at_key("HW007", f'unknown key "{key}" in {failure.place}', path, help=mend)


def _missing_keys(document: Document, failure: _Failure, refused: Refused) -> Iterator[Found]:
    """One that is merely misspelt, or that something refused stands for, is not told again."""
    unknown = set(failure.value) - set(failure.properties)
    if unknown & set(refused):
        return
    for key in failure.bound:
        if key not in failure.value and not any(stands_for(each, key, failure.kind) for each in unknown):
            message = f'{failure.place} lacks the key "{key}"'
            yield failure.path, document.at_key("HW008", message, failure.path)


def _wrong_type(document: Document, failure: _Failure) -> Explanation:
    wanted = [failure.bound] if isinstance(failure.bound, str) else list(failure.bound)
    numeric = failure.form != "text" and bool({"integer", "number"} & set(wanted))
    shown, mend = _shown(document, failure.path, failure.value, numeric=numeric)
    hidden = failure.path in document.hidden
    if hidden and isinstance(failure.value, (int, float, str)):
        shown, mend = f"the text {json.dumps(concealed(document.written(failure.path) or ''))}", ""
    if mend.startswith("YAML reads") and "number" not in wanted:
        mend = _whole(failure.value)
    if failure.form == "PromQL expression" and isinstance(failure.value, dict):
        mend = "put single quotes around an expression that begins with {"
    if failure.kind == "override" and isinstance(failure.value, bool):
        mend = f"write {{enabled: {str(failure.value).lower()}}}"
    mend = mend or ("" if failure.form == "text" else failure.description)
    mend = mend or ("" if hidden else _wrapped(failure, wanted))
    return "HW009", f"{_name(failure.path)} must be {_expected(wanted, failure.form)}, not {shown}", mend


def _wrapped(failure: _Failure, wanted: Sequence[str]) -> str:
    """How to write what is one for a list, or a list of names for a mapping."""
    value = failure.value
    names = value if isinstance(value, list) and all(isinstance(each, str) for each in value) else ()
    if wanted == ["object"] and names and failure.path == ("metrics",):
        return f"write {{{', '.join(f'{name}: {{}}' for name in names)}}}"
    inside = json.dumps(value, ensure_ascii=False).replace('"', "") if isinstance(value, (str, dict)) else ""
    if wanted != ["array"] or not 0 < len(inside) <= _SHORT or "://" in inside or not failure.fits([value]):
        return ""
    try:
        return f"write [{inside}]" if yaml.safe_load(f"[{inside}]") == [value] else ""
    except yaml.YAMLError:
        return ""


def _whole(text: str) -> str:
    """How to write `1e3` where 1.0e+3, which is a fraction to YAML, would not do either."""
    return f"write {float(text):.0f}" if float(text).is_integer() else ""


def _expected(wanted: Sequence[str], form: str) -> str:
    if form:
        return form if form == "text" else f"a {form}"
    words = [_TYPES[each] for each in wanted if each != "null"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _shown(document: Document, path: KeyPath, value: Any, *, numeric: bool) -> tuple[str, str]:
    """What was written, in words, and how to mend it."""
    written = document.written(path) or ""
    match value:
        case None:
            return "empty", ""
        case bool() if written.lower() not in ("true", "false"):
            shown = str(value).lower()
            return f"{shown} (YAML reads {written} as {shown})", "" if numeric else f'quote it: "{written}"'
        case bool():
            return str(value).lower(), ""
        case float() if not math.isfinite(value):
            return written, "it must be finite"
        case int() | float():
            return written or str(value), ""
        case str() if numeric and number_hint(value):
            return f'the text "{value}"', f"YAML reads {value} as text: write {number_hint(value)}"
        case str() if numeric and document.quoted(path) and value.replace(".", "", 1).isdigit():
            return f'the text "{value}"', "remove the quotes"
        case str():
            return f'the text "{value[:60]}"', ""
        case list():
            return "a list", ""
        case _:
            return "a mapping", ""


def _name(path: KeyPath) -> str:
    if path and isinstance(path[-1], int):
        holder = next((str(key) for key in reversed(path) if isinstance(key, str)), "the list")
        return f'item {path[-1] + 1} of "{holder}"'
    return f'"{path[-1]}"' if path else "the file"


def _not_in_enum(document: Document, failure: _Failure) -> Explanation:
    written = document.written(failure.path) or failure.value
    return "HW010", f'{_name(failure.path)} can\'t be "{written}"', suggest(written, failure.bound, "one of")


def _out_of_range(_document: Document, failure: _Failure) -> Explanation:
    bound = {"minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most"}[failure.keyword]
    return "HW010", f"{_name(failure.path)} must be {bound} {failure.bound}, not {failure.value}", ""


def _bad_pattern(_document: Document, failure: _Failure) -> Explanation:
    written = str(failure.value)
    if number_hint(written):
        mend = _whole(written) or f"write {number_hint(written)}"
        return "HW009", f"{_name(failure.path)}: YAML reads {written} as text", mend
    return "HW010", f'{_name(failure.path)}: "{written[:60]}" is not a {failure.form}', failure.description


def _empty(_document: Document, failure: _Failure) -> Explanation:
    return "HW010", f"{_name(failure.path)} must not be empty", ""


def _repeated(_document: Document, failure: _Failure) -> Explanation:
    return "HW010", f"{_name(failure.path)} holds an item twice", ""


def _other(_document: Document, failure: _Failure) -> Explanation:
    return "HW010", f"{_name(failure.path)}: {failure.message}", ""


_EXPLAIN: Mapping[str, Callable[[Document, _Failure], Explanation]] = {
    "type": _wrong_type,
    "enum": _not_in_enum,
    "minimum": _out_of_range,
    "exclusiveMinimum": _out_of_range,
    "maximum": _out_of_range,
    "pattern": _bad_pattern,
    "minLength": _empty,
    "minItems": _empty,
    "uniqueItems": _repeated,
}
