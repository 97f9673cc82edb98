"""Rule files and shipped packs to rules: all problems of all files at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from healthwatch import resources, yamlfile
from healthwatch.diagnostics import Diagnostic, Span, errors, in_order, suggest
from healthwatch.rulefile import crosscheck
from healthwatch.rulefile.build import build
from healthwatch.rulefile.draft import Draft, name_of
from healthwatch.rulefile.lint import UNKNOWN, Facts, Subject, lint
from healthwatch.rulefile.model import Loaded, Rule
from healthwatch.rulefile.overriding import Overridden, brought_about
from healthwatch.rulefile.schema import findings, readable
from healthwatch.stream.catalogue import Metric, catalogue
from healthwatch.yamlfile import Document, KeyPath, Problem

Overrides: TypeAlias = Mapping[str, Mapping[str, Any]]

BUILTIN = "builtin:"

_RULE_DEPTH = 4  # groups, its place, rules, its place

REFUSED = {
    "record": ("recording rules are not supported", "write it into the alerts; equal parts are computed once"),
    "interval": ("a group has no interval", "a rule is evaluated at every step at which its metrics have samples"),
    "query_offset": ("a group has no query_offset", "write offset behind the selector"),
}  # fmt: skip


def load_rules(sources: Sequence[str | Path], overrides: Overrides | None = None, facts: Facts = UNKNOWN) -> Loaded:
    """Load rule files, folders of them and `builtin:<pack>`; `overrides` by rule name, as the config has them.

    `facts` of the model to be watched make some checks sharper. Never raises. `rules` holds the enabled rules
    without an error; whoever must refuse looks at `diagnostics`.
    """
    documents: list[Document] = []
    diagnostics: list[Diagnostic] = []
    drafts: list[Draft] = []
    for opened, problems in opened_once(sources):
        documents += opened
        diagnostics += problems
        for document in opened:
            drafts += _drafts(document, overrides or {}, diagnostics)
    crosscheck.names(drafts)
    crosscheck.inhibition(drafts)
    declared = {
        name: metric if isinstance(metric, dict) else {}
        for document in documents
        for name, metric in _declared(document).items()
    }
    known = {**catalogue(), **{name: declared_metric(name, each) for name, each in declared.items()}}
    unlabelled = {name for name, each in declared.items() if "labels" not in each}
    described = {name: metric for name, metric in known.items() if name not in unlabelled}
    finish = partial(_finish, known=known, described=described, facts=facts)
    rules: list[Rule] = []
    overridden: list[Overridden] = []
    for draft in drafts:
        before = len(draft.diagnostics)
        rule = finish(draft)
        rules += [] if rule is None else [rule]
        overridden += brought_about(draft, finish, draft.diagnostics[before:])
        diagnostics += draft.diagnostics
    parameters = {draft.name: tuple(draft.data.get("params", {})) for draft in drafts if draft.name}
    return Loaded(tuple(rules), tuple(in_order(diagnostics)), declared, parameters, tuple(overridden))


def opened_once(sources: Iterable[str | Path]) -> Iterator[tuple[list[Document], list[Diagnostic]]]:
    """What each source opens that none before it has: `./r.yaml` is `r.yaml`, and may lie in a folder named too."""
    seen: set[object] = set()
    for source in sources:
        opened, problems = open_source(source)
        new = {_place(document.file): document for document in opened}
        yield [document for place, document in new.items() if place not in seen], problems
        seen |= new.keys()


def _place(file: str) -> object:
    if file.startswith(BUILTIN):
        return file
    try:
        return Path(file).resolve()
    except (OSError, RuntimeError, ValueError):  # a circle of links, or no path at all: the reader has told
        return file


def open_source(source: str | Path) -> tuple[list[Document], list[Diagnostic]]:
    """The documents behind one source, read but not yet checked."""
    name = str(source)
    if name.startswith(BUILTIN):
        pack = name.removeprefix(BUILTIN)
        if pack not in resources.packs():
            mend = suggest(pack, resources.packs(), "shipped packs")
            return [], [Diagnostic("HW018", "error", f'no pack is called "{pack}"', Span(name, 0, 0, 0), help=mend)]
        return [yamlfile.load(resources.path(f"rules/{pack}.yaml"), name)], []
    opened = [yamlfile.load(file) for file in files_of(Path(name))]
    if Path(name).is_dir():
        opened = [document for document in opened if not _is_config(document)]
    if not opened:
        mend = "rule files end in .yaml or .yml"
        return [], [Diagnostic("HW018", "error", "this folder holds no rule file", Span(name, 0, 0, 0), help=mend)]
    return opened, []


def _is_config(document: Document) -> bool:
    """A training's YAML, which may lie beside its rules."""
    return isinstance(document.data, dict) and "healthwatch" in document.data and "groups" not in document.data


def files_of(path: Path) -> list[Path]:
    """A file itself; of a folder its rule files by name, tests left out."""
    if not path.is_dir():
        return [path]
    files = (file for file in path.iterdir() if file.suffix in (".yaml", ".yml"))
    return sorted(file for file in files if not file.stem.endswith(".test"))


def _finish(draft: Draft, known: Mapping[str, Metric], described: Mapping[str, Metric], facts: Facts) -> Rule | None:
    """`described` are the metrics whose labels are known."""
    rule = build(draft, known)
    crosscheck.metrics(draft, known.keys())
    crosscheck.references(draft, described)
    lint(Subject(draft, described, known, facts))
    return None if errors(draft.diagnostics) or not draft.enabled else rule


def _drafts(document: Document, overrides: Overrides, diagnostics: list[Diagnostic]) -> list[Draft]:
    """The rules of a file, without the keys that the schema refuses: each is checked as far as it goes."""
    rules = _rules(document.data)
    names = {path: name for path, _, rule in rules if (name := name_of(rule))}
    if document.data is None:
        diagnostics += [problem.diagnostic for problem in document.problems] or [_nothing(document)]
        return []
    if _is_config(document):
        mend = "name the rule files that it lists, or a folder"
        diagnostics += [problem.diagnostic for problem in document.problems]
        diagnostics.append(document.at_key("HW021", "this is a config, not a rule file", ("healthwatch",), help=mend))
        return []
    broken = [problem for problem in findings(document, "rules", REFUSED) if not _inside_when(problem)]
    diagnostics += (_in_rule(problem, names) for problem in (*readable(document, broken), *broken))
    if not isinstance(document.data, dict):
        return []
    diagnostics += crosscheck.declared(document)
    if not isinstance(document.data.get("groups"), list):
        return []
    diagnostics += crosscheck.groups(document)
    refused = {problem.path for problem in (*document.problems, *broken)}
    return [
        Draft(
            document,
            path,
            rule,
            _sound(rule, path, refused),
            _sound(group, path[:2], refused),
            overrides.get(name_of(rule), {}),
            sound=not any(each[: len(path)] == path for each in refused),
        )
        for path, group, rule in rules
        if "record" not in rule  # which is told, and all else of such a rule is beside the point
    ]


def _in_rule(problem: Problem, names: Mapping[KeyPath, str]) -> Diagnostic:
    """With the rule that it stands in, named as in every other problem of a rule."""
    name = names.get(problem.path[:_RULE_DEPTH])
    found = problem.diagnostic
    return found if name is None or found.label else replace(found, label=f'rule "{name}"')


def _inside_when(problem: Problem) -> bool:
    """Conditions say themselves what is wrong in them, better than a schema can."""
    return len(problem.path) > _RULE_DEPTH and problem.path[_RULE_DEPTH] == "when"


def _sound(mapping: Mapping[str, Any], path: KeyPath, refused: Set[KeyPath]) -> dict[str, Any]:
    """The keys below which nothing is wrong."""
    wrong = {each[len(path)] for each in refused if each[: len(path)] == path and len(each) > len(path)}
    return {key: value for key, value in mapping.items() if key not in wrong}


def _rules(data: Any) -> list[tuple[KeyPath, Mapping[str, Any], Mapping[str, Any]]]:
    """Every rule, with its path and its group."""
    groups = data.get("groups") if isinstance(data, dict) else None
    return [
        (("groups", g, "rules", r), group, rule)
        for g, group in enumerate(groups if isinstance(groups, list) else ())
        if isinstance(group, dict) and isinstance(group.get("rules"), list)
        for r, rule in enumerate(group["rules"])
        if isinstance(rule, dict)
    ]


def _declared(document: Document) -> Mapping[str, Any]:
    """A list of names, which is refused, declares these all the same: that is told once."""
    metrics = document.data.get("metrics") if isinstance(document.data, dict) else None
    if isinstance(metrics, list):
        return {name: {} for name in metrics if isinstance(name, str)}
    return metrics if isinstance(metrics, dict) else {}


def declared_metric(name: str, declared: Mapping[str, Any]) -> Metric:
    """A metric as a file declares it; what is left out, or wrong and told, is as usual."""
    labels = declared.get("labels", [])
    return Metric(
        name=name,
        unit=str(declared.get("unit", "1")),
        labels=tuple(map(str, labels)) if isinstance(labels, list) else (),
        kind=declared.get("kind", "gauge"),
        cadence=declared.get("cadence", "step"),
        source="rule file",
        help=str(declared.get("help", "")),
        every=declared.get("every") if isinstance(declared.get("every"), int) else None,
    )


def _nothing(document: Document) -> Diagnostic:
    span = Span(document.file, 0, 0, 0)
    return Diagnostic("HW021", "error", "this file is empty", span, help="a rule file begins with groups:")
