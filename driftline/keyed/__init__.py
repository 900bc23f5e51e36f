"""One learner for every key, all of them in one compiled loop."""

from driftline.keyed.keyed import Keyed, KeyedTicket
from driftline.keyed.trace import KeyedCertificate, KeyedTrace, KeyTotals

__all__ = ["KeyTotals", "Keyed", "KeyedCertificate", "KeyedTicket", "KeyedTrace"]
