"""Of which job this process is a part."""

from __future__ import annotations


def rank() -> int | None:
    """Of this process in its job; None where communication is not initialised."""
    from mindspore import communication

    return int(communication.get_rank()) if communication.GlobalComm.INITED else None


def ranks() -> int:
    """How many processes the job has, as far as they talk to each other."""
    from mindspore import communication

    return int(communication.get_group_size()) if communication.GlobalComm.INITED else 1
