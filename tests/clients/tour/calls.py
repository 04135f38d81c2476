"""Records which public methods of the client were called, so that a tour that forgets one fails."""

import functools
import inspect

from queen import Admin, Queen
from queen.builders import (
    ConsumeBuilder,
    DLQBuilder,
    OperationBuilder,
    PushBuilder,
    QueueBuilder,
    TransactionBuilder,
    TransactionQueueBuilder,
)

CLASSES = [
    Queen,
    Admin,
    QueueBuilder,
    PushBuilder,
    ConsumeBuilder,
    DLQBuilder,
    OperationBuilder,
    TransactionBuilder,
    TransactionQueueBuilder,
]
_uncalled: set[str] = set()


def record_calls() -> None:
    for each in CLASSES:
        for name, function in inspect.getmembers(each, inspect.isfunction):
            if not name.startswith("_"):
                _uncalled.add(f"{each.__name__}.{name}")
                setattr(each, name, _noting(f"{each.__name__}.{name}", function))


def uncalled() -> list[str]:
    return sorted(_uncalled)


def _noting(name: str, function):
    @functools.wraps(function)
    def noted(*args, **kwargs):
        _uncalled.discard(name)
        return function(*args, **kwargs)

    return noted
