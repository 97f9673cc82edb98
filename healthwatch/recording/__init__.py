"""One SQLite file a process: what the training saw, what was said about it, and what must still be told."""

from healthwatch.recording.codec import dump
from healthwatch.recording.origin import describe, write_rules
from healthwatch.recording.run import Attempt, Delivery, Reload, Run
from healthwatch.recording.state import Snapshots, book_of, reach, recall, revive, rows_of
from healthwatch.recording.writer import Recording

__all__ = [
    "Attempt",
    "Delivery",
    "Recording",
    "Reload",
    "Run",
    "Snapshots",
    "book_of",
    "describe",
    "dump",
    "reach",
    "recall",
    "revive",
    "rows_of",
    "write_rules",
]
