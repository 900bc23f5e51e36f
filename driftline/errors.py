"""What goes wrong, by name. Every error here is a ``ValueError``."""

__all__ = ["InputError", "NoGuaranteeError"]


class InputError(ValueError):
    """Input that does not fit: the message says what was seen and what was expected."""


class NoGuaranteeError(ValueError):
    """A combination of parts for which the bound does not hold, refused with the reason."""
