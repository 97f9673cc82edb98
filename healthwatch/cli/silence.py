"""`healthwatch silence add|list|expire RUN`."""

from __future__ import annotations

import getpass
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import click

from healthwatch.alerting.message import time_text
from healthwatch.alerting.model import Now
from healthwatch.alerting.silence import Matcher, Silence, mark, parse_matcher
from healthwatch.diagnostics import Diagnostic, Invalid, counted, suggest
from healthwatch.promql.regex import compile_regex
from healthwatch.recording import Run, book_of
from healthwatch.replay import Version, load_replay
from healthwatch.rulefile.shipped import meant
from healthwatch.session import control
from healthwatch.session.failing import RULE
from healthwatch.stream.ticks import parse_duration

NAMED = 5  # incidents that a new silence is said to fit
OF_EVERY_ALERT = ("alertname", "rank", "run", "severity")


def _output(run: Path) -> Path:
    """The folder that a run records into, named itself or by a file in it."""
    if run.is_file() and not run.match("rank_*.sqlite"):
        message = f"{run.as_posix()} is no run: name its output folder, or a file rank_<r>.sqlite in it"
        raise click.BadParameter(message, param_hint="RUN")
    return run.parent if run.is_file() else run


@click.group("silence")
def command() -> None:
    """Ask a training, running or to be started, to be quiet about something. It goes on recording it.

    RUN is the output folder of the run, or a file rank_<r>.sqlite in it.
    """


@command.command("add", short_help="Silence alerts that fit every MATCHER.")
@click.argument("run", type=click.Path(exists=True, path_type=Path))
@click.argument("matchers", nargs=-1, required=True, metavar="MATCHER...")
@click.option("--for", "duration", metavar="TIME", help="A wall-clock time such as 30m or 2h.")
@click.option("--until-step", type=click.IntRange(1), help="Up to this step.")
@click.option("--comment", default="", help="Why.")
def add(run: Path, matchers: tuple[str, ...], duration: str | None, until_step: int | None, comment: str) -> None:
    """Silence alerts that fit every MATCHER: alertname=LossSpike, param=~".*attention.*", severity!=critical.

    Labels are those of the series and of the rule, and alertname, severity, run and rank.
    """
    limit = parse_duration(duration) if duration is not None else None
    if duration is not None and (limit is None or limit.seconds is None):
        raise click.BadParameter(f"{duration!r} is no wall-clock time such as 30m or 2h", param_hint="--for")
    if limit is None and until_step is None:
        raise click.UsageError("say how long: --for 2h or --until-step N")
    now = time.time()
    silence = Silence(
        id=control.new_id(),
        matchers=tuple(_matcher(text) for text in matchers),
        starts=now,
        ends=now + limit.seconds if limit is not None and limit.seconds is not None else None,
        until_step=until_step,
        comment=comment,
        author=_author(),
    )
    output = _output(run)
    control.write(output, silence)
    click.echo(silence.id)  # alone on stdout, for scripts
    versions = _versions(output)
    click.echo(f"in force {_limits(silence)}{_fits(output, silence, versions)}", err=True)
    for remark in (*_past(output, until_step), *_remarks(output, silence.matchers, versions)):
        click.echo(remark, err=True)


def _past(output: Path, until_step: int | None) -> Iterator[str]:
    """A silence that ends before it begins, unless the run goes back."""
    last = 0
    for file in sorted(output.glob("rank_*.sqlite")) if until_step is not None else ():
        with suppress(Invalid), Run.open(file) as run:
            last = max(last, run.last_step())
    if until_step is not None and until_step < last:
        yield f"step {until_step} is past: the run is at step {last}, so this holds back nothing"


def _versions(output: Path) -> Sequence[Version]:
    """The rules that the run has been watched with; none where that is not known."""
    with suppress(Invalid):
        return load_replay(output).versions if any(output.glob("rank_*.sqlite")) else ()
    return ()


def _fits(output: Path, silence: Silence, versions: Sequence[Version]) -> str:
    """Which incidents that are open on any rank would be held back now."""
    if not versions:
        return ""
    labels = {rule.name: rule.labels for rule in versions[-1].rules}
    found = []
    for file in sorted(output.glob("rank_*.sqlite")):
        with suppress(Invalid), Run.open(file) as run:
            book, now = book_of(run.state()), Now(run.last_step(), silence.starts)
            site = {"run": str(run.meta.get("run", "")), "rank": str(run.meta.get("rank", 0))}
            marked = (mark(each, [silence], {**labels.get(each.rule, {}), **site}, book, now) for each in book.open())
            found += [each.id for each in marked if each.silenced]
    if not found:
        return "; it fits no open incident now"
    names = list(dict.fromkeys(found))
    more = f" and {len(names) - NAMED} more" if names[NAMED:] else ""
    count = counted(len(found), "open incident")
    return f"; it fits {count} now: {', '.join(names[:NAMED])}{more}"


def _remarks(output: Path, matchers: Sequence[Matcher], versions: Sequence[Version]) -> Iterator[str]:
    """Names that nothing recorded so far has: a slip would silence nothing, or everything else."""
    if not versions:
        return
    rules = [rule for version in versions for rule in version.rules]
    names = {RULE, *(rule.name for rule in rules)}
    with Run.open(output) as recorded:
        labels = {*OF_EVERY_ALERT, *recorded.label_names(), *(label for rule in rules for label in rule.labels)}
    for matcher in matchers:
        if matcher.name not in labels:
            yield f'nothing in this run has the label "{matcher.name}"; {suggest(matcher.name, labels, "labels")}'
        elif matcher.name == "alertname" and "~" in matcher.operator:
            if not any(compile_regex(matcher.value).fullmatch(name) for name in names):
                yield f"no rule of this run fits {matcher}; {suggest(matcher.value, names, 'rules')}"
        elif matcher.name == "alertname" and matcher.value not in names:
            yield f'no rule of this run is called "{matcher.value}"; {meant(matcher.value, names, "rules")}'


def _matcher(text: str) -> Matcher:
    try:
        return parse_matcher(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="MATCHER") from None


def _author() -> str:
    with suppress(Exception):  # a container may have no name for its user
        return getpass.getuser()
    return ""


@command.command("list", short_help="List the silences that are in force.")
@click.argument("run", type=click.Path(exists=True, path_type=Path))
@click.option("--all", "everything", is_flag=True, help="Those that have ended as well.")
def list_(run: Path, *, everything: bool) -> None:
    """List the silences that are in force, or will be as far as the clock says."""
    now = time.time()
    found = [(silence, silence.ends is not None and silence.ends <= now) for silence in _all(run)]
    lines = [_line(silence, ended=ended) for silence, ended in found if everything or not ended]
    click.echo("\n".join(lines) or "there is no silence")


def _limits(silence: Silence, *, ended: bool = False) -> str:
    limits = []
    if silence.ends is not None:
        limits.append(f"{'ended' if ended else 'until'} {time_text(silence.ends)}")
    if silence.until_step is not None:
        limits.append(f"up to step {silence.until_step}")
    return ", ".join(limits)


def _line(silence: Silence, *, ended: bool) -> str:
    about = " by ".join(part for part in (silence.comment, silence.author) if part)
    matchers = " ".join(str(matcher) for matcher in silence.matchers)
    return f"{silence.id}  {matchers}  {_limits(silence, ended=ended)}" + (f"  ({about})" if about else "")


@command.command("expire")
@click.argument("run", type=click.Path(exists=True, path_type=Path))
@click.argument("names", nargs=-1, required=True, metavar="ID...")
def expire(run: Path, names: tuple[str, ...]) -> None:
    """End silences now; what still fires is then told."""
    known = {silence.id: silence for silence in _all(run)}
    unknown = [name for name in names if name not in known]
    if unknown:
        click.echo(f'no silence is called "{unknown[0]}"; {suggest(unknown[0], known, "silences")}', err=True)
        sys.exit(2)
    for name in names:
        control.expire(_output(run), known[name])


def _all(run: Path) -> list[Silence]:
    try:
        return control.all_of(_output(run))
    except ValueError as error:
        raise Invalid([Diagnostic("HW605", "error", str(error))]) from None
