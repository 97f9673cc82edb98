"""Compiled loops of another version of the code are compiled anew.

numba keeps what it has compiled beside a module, and looks at that module alone: constants and loops that it takes from
others are in the compiled code, and stay as they were when those modules change.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zlib import crc32


def digest(*files: str | Path) -> int:
    """Of the text of some modules, as far as it is there."""
    return crc32(b"\0".join(Path(file).read_bytes() for file in files if Path(file).exists()))


SOURCES = tuple(
    Path(__file__).with_name(f"{name}.py")
    for name in ("compiled", "ahead_loops", "bounds", "limits", "moving", "training")
)

MADE_OF = digest(*SOURCES)
"""What every module of loops compiles into a function that gives it back."""


def drop_older(made_of: Any, now: int = MADE_OF) -> None:
    """Drop what was compiled of a module unless `made_of`, compiled before it, was kept and gives back this number.

    It stands before the loops in their module, so that these are compiled anew. Raises RuntimeError where the old ones
    can't be dropped.
    """
    if made_of() == now and made_of.stats.cache_hits:
        return
    name = f"{Path(made_of.py_func.__code__.co_filename).stem}."
    own = f"{name}{made_of.py_func.__name__}-"
    try:
        for index in Path(made_of.stats.cache_path).glob(f"{name}*.nbi"):
            if not index.name.startswith(own):
                index.unlink(missing_ok=True)
        if made_of() != now:
            made_of.recompile()  # last, for from now on whatever is kept counts as new
    except OSError as error:
        raise RuntimeError(f"the loops of another version can't be replaced: {error}") from error
