"""What goes wrong, by name. Every error that is the input's is a ``ValueError``."""

__all__ = ["DAMAGE", "BusyError", "InputError", "NoGuaranteeError", "TornError"]

#: The exceptions that reading a file may raise if no version of this library wrote it: values of a
#: wrong type, too deeply nested data, too large sizes.
DAMAGE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


class InputError(ValueError):
    """Invalid input: the message says what was seen and what was expected."""


class NoGuaranteeError(ValueError):
    """A combination of parts for which the bound does not hold, refused with the reason."""


class BusyError(InputError, RuntimeError):
    """A call from another thread, or from a callback, while the learner plays a stream."""


class TornError(RuntimeError):
    """A committee whose members stand after different rounds: an exception came between them."""
