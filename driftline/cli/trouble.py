"""Errors as a person sees them: one line that says what to do, and exit status 2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

__all__ = ["Trouble", "plain_errors"]


class Trouble(click.ClickException):
    """Something is wrong with what was given."""

    exit_code = 2


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn the library's errors into messages."""
    from driftline.errors import InputError, NoGuaranteeError

    try:
        yield
    except (InputError, NoGuaranteeError, FileNotFoundError) as error:
        raise Trouble(str(error)) from error
    except BrokenPipeError:
        raise  # who reads has seen enough
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise Trouble(f"{where}{error.strerror or error}") from error
