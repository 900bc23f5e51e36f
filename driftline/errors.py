"""What goes wrong, by name. Every error here is a ``ValueError``."""

__all__ = ["DAMAGE", "BusyError", "InputError", "NoGuaranteeError"]

#: What reading a file can raise if no version of this library wrote it: values of a wrong kind, too
#: deep a nest, too large a number.
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
    """Input that does not fit: the message says what was seen and what was expected."""


class NoGuaranteeError(ValueError):
    """A combination of parts for which the bound does not hold, refused with the reason."""


class BusyError(InputError, RuntimeError):
    """A learner that is in the middle of something, called by another thread or a callback."""
