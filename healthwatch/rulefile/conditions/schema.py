"""The JSON Schema of `when:`, made from the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from healthwatch.rulefile.conditions.registry import registry
from healthwatch.rulefile.conditions.spec import BY, OVER, Condition, Parameter

Schema: TypeAlias = dict[str, Any]

_REF: Schema = {"$ref": "#/$defs/when"}
_PARAM = r"\$[A-Za-z_][A-Za-z0-9_]*"
_NAME = "[A-Za-z_:][A-Za-z0-9_:]*"
_LABEL = "[A-Za-z_][A-Za-z0-9_]*"
_WALL = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+$"


def when_schema(conditions: Mapping[str, Condition] | None = None) -> Schema:
    """The schema to stand at `#/$defs/when`: one object with a property for every condition.

    That exactly one of them is given is checked in Python: `oneOf` would give one useless error.
    """
    known = registry().conditions if conditions is None else conditions
    return {
        "type": "object",
        "title": "when",
        "description": "One condition, or all, any or not of conditions; beside it a quorum.",
        "properties": {name: _condition(condition) for name, condition in known.items()} | _combinations(),
        "additionalProperties": False,
        "minProperties": 1,
        "examples": [{"nonfinite": {"metric": ["loss", "grad_norm"]}}],
    }


def _condition(condition: Condition) -> Schema:
    required = [each.name for each in condition.parameters if each.required]
    schema: Schema = {
        "type": "object",
        "title": condition.name,
        "description": f"{condition.summary} {condition.finds}",
        "properties": {each.name: _parameter(each) for each in condition.parameters},
        "additionalProperties": False,
    }
    if required:
        schema["required"] = required
    return schema | {"examples": [dict(each) for each in (condition.example, *condition.examples)]}


def _parameter(parameter: Parameter) -> Schema:
    schema = {"title": _title(parameter.name), "description": parameter.help} | _kind(parameter)
    if parameter.default is not None:
        schema["default"] = parameter.default
    example = parameter.default if parameter.example is None else parameter.example
    return schema if example is None else schema | {"examples": [example]}


def _title(name: str) -> str:
    """What an editor shows above the description."""
    return name.replace("_", " ").capitalize()


def _kind(parameter: Parameter) -> Schema:
    match parameter.kind:
        case "metric":
            name = {"type": "string", "pattern": f"^{_NAME}$"}
            return {"type": ["string", "array"], "pattern": f"^{_NAME}$", "items": name, "minItems": 1}
        case "select":
            value = {"type": ["string", "number"]}
            return {"type": "object", "propertyNames": {"pattern": f"^{_LABEL}$"}, "additionalProperties": value}
        case "labels":
            return {"type": "array", "items": {"type": "string", "pattern": f"^{_LABEL}$"}, "uniqueItems": True}
        case "number":
            return {"type": ["number", "string"], "pattern": f"^{_PARAM}$"} | _bounds(parameter)
        case "steps" | "count":
            return {"type": ["integer", "string"], "pattern": f"^{_PARAM}$", "minimum": int(parameter.least or 1)}
        case "count or metric":
            return {"type": ["integer", "string"], "pattern": f"^({_PARAM}|{_NAME})$", "minimum": 1}
        case "choice":
            return {"type": "string", "enum": list(parameter.choices)}
        case "flag":
            return {"type": "boolean"}
        case "wall":
            return {"type": "string", "pattern": _WALL}


def _bounds(parameter: Parameter) -> Schema:
    words = ("exclusiveMinimum", "exclusiveMaximum") if parameter.open_bounds else ("minimum", "maximum")
    bounds = zip(words, (parameter.least, parameter.most), strict=True)
    return {word: bound for word, bound in bounds if bound is not None}


def _combinations() -> Schema:
    least = {
        "type": ["integer", "string"],
        "minimum": 1,
        "pattern": rf"^([0-9]+(\.[0-9]+)?%|{_PARAM})$",
        "examples": [5, "5%"],
    }
    inside = {
        "at_least": least
        | {"title": "At least", "description": "How many of the series must breach: a number, or a share such as 5%."},
        "by": _parameter(BY),
        "over": _parameter(OVER),
    }
    return {
        "all": _list("All", "Breaches where every one of these does, on the labels that they have in common."),
        "any": _list("Any", "Breaches where at least one of these does."),
        "not": {"title": "Not"}
        | _REF
        | {"description": "The opposite of a condition; what has no data still does not breach."},
        "quorum": least
        | {
            "title": "Quorum",
            "type": ["integer", "string", "object"],
            "description": "Beside a condition: breaches where at least so many of its series do, 5 or 5%.",
            "properties": inside,
            "additionalProperties": False,
            "required": ["at_least"],
            "examples": [5, "5%", {"at_least": "5%", "by": ["layer"]}],
        },
    }


def _list(title: str, description: str) -> Schema:
    examples = [[{"zscore": {"metric": "grad_norm", "above": 6}}, {"spike_ratio": {"metric": "grad_norm", "above": 3}}]]
    return {
        "title": title,
        "description": description,
        "type": "array",
        "items": _REF,
        "minItems": 1,
        "examples": examples,
    }
