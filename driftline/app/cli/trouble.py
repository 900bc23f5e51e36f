"""Errors on the command line: one line that says what to do, and exit status 2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

__all__ = ["FAILURES", "Trouble", "failing", "plain_errors"]

#: Errors of the machine: out of memory, out of disk space, no permission.
FAILURES = (MemoryError, OSError)


class Trouble(click.ClickException):
    """An error in the input, or an error of the machine, as a message."""

    exit_code = 2


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn the library's errors and the machine's into messages."""
    from driftline.errors import InputError, NoGuaranteeError

    try:
        yield
    except (InputError, NoGuaranteeError) as error:
        raise Trouble(str(error)) from error
    except BrokenPipeError:
        raise  # the reader of the pipe has closed it, as `head` does
    except FAILURES as error:
        raise Trouble(_in_words(error)) from error


@contextmanager
def failing(left: str | Callable[[], str]) -> Iterator[None]:
    """Turn the machine's errors into messages that also say what is saved."""
    try:
        yield
    except BrokenPipeError:
        raise
    except FAILURES as error:
        said = left if isinstance(left, str) else left()
        raise Trouble(f"{_in_words(error)}; {said}") from error


def _in_words(error: MemoryError | OSError) -> str:
    """Return an error in one line.

    >>> _in_words(OSError(28, "No space left on device", "a.csv"))
    'a.csv: No space left on device'
    """
    if isinstance(error, MemoryError):
        return "there is not enough memory" + (f" ({error})" if str(error) else "")
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"
