"""Compute once what several chapters ask for, in the one process that executes them all.

Only that process remembers (`report/execute` sets the variable for its kernel): while the chapters are executed, the
files they read stand still. Anywhere else files may change between two calls, and every call computes anew.
"""

import functools
import hashlib
import os
import pickle
from collections.abc import Callable
from typing import Any, TypeVar

VARIABLE = "SPECVERDICT_REMEMBER"
T = TypeVar("T")
_kept: dict[tuple[str, str], bytes] = {}


def remembered(function: Callable[..., T]) -> Callable[..., T]:
    """A decorator for a slow function whose arguments and result can be pickled.

    Arguments are compared by their content. Every caller gets a copy of the result: it may change it.
    """

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> T:
        if not os.environ.get(VARIABLE):
            return function(*args, **kwargs)
        content = hashlib.sha256(pickle.dumps((args, sorted(kwargs.items())))).hexdigest()
        key = (f"{function.__module__}.{function.__qualname__}", content)
        if key not in _kept:
            _kept[key] = pickle.dumps(function(*args, **kwargs))
        copy: T = pickle.loads(_kept[key])
        return copy

    return wrapper
