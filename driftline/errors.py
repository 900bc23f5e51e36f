"""What goes wrong, by name. Every error here is a ``ValueError``."""

__all__ = ["DAMAGE", "BusyError", "InputError", "NoGuaranteeError"]

#: What data that nobody has written can raise: nonsense, depths and sizes.
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
