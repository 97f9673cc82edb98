"""`healthwatch test FILE...`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from healthwatch.diagnostics import render_text
from healthwatch.ruletest import Report, run_files
from healthwatch.ruletest.files import FileReport


@click.command("test")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--quiet", "-q", is_flag=True, help="Show failures alone.")
def command(files: tuple[Path, ...], quiet: bool) -> None:
    """Run rule tests: samples in, alerts, incidents and actions out.

    A FILE is a test file, or a folder whose *.test.yaml are run. The format is that of promtool's unit tests, in steps.
    Exit code: 0 everything as expected, 1 a test failed, 2 a file could not be run.
    """
    report = run_files(files)
    if not report.files:
        click.echo("no test files (*.test.yaml) there", err=True)
        sys.exit(2)
    for file in report.files:
        click.echo(_text(file, quiet=quiet), nl=False)
    click.echo(_summary(report))
    sys.exit(report.exit_code)


def _text(file: FileReport, *, quiet: bool) -> str:
    if not file.could_run:
        return f"{render_text(file.diagnostics)}\n"
    lines = [render_text(file.diagnostics)] if file.diagnostics else []
    for case in file.cases:
        if case.failures:
            lines += [f"FAILED {file.file}: {case.name}", *(f"  {text}" for _, text in case.failures), ""]
        elif not quiet:
            lines.append(f"ok     {file.file}: {case.name}")
    return "".join(f"{line}\n" for line in lines)


def _summary(report: Report) -> str:
    stuck = sum(not file.could_run for file in report.files)
    text = f"{report.passed} passed, {report.failed} failed"
    return f"{text}, {stuck} of {len(report.files)} files could not be run" if stuck else text
