"""Logs read back into frames; one format a module, found through the entry points `healthwatch.readers`."""

from healthwatch.readers.format import Format, Log, Options, Passed, Reader, formats, open_log
from healthwatch.readers.steps import Steps

__all__ = ["Format", "Log", "Options", "Passed", "Reader", "Steps", "formats", "open_log"]
