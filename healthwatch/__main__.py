"""`python -m healthwatch`: the same as `healthwatch`."""

from __future__ import annotations

from healthwatch.cli import main

if __name__ == "__main__":
    main()
