"""Online structured prediction under drift, with a guarantee.

>>> import driftline as dl
>>> stream = dl.streams.LabelFlips(rounds=1000, flips=3, seed=0)
>>> loss = dl.losses.Logistic(stream.task)
>>> learner = dl.OGD(
...     loss=loss,
...     decoder=dl.decoders.GapOptimal(loss),
...     rate=dl.rates.Polyak(),
...     domain=dl.domains.Ball(diameter=20.0),
... )
>>> trace = learner.run(stream, seed=0)
>>> len(trace), bool(trace.risk.sum() < 200)
(1000, True)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from driftline.version import __version__ as __version__

if TYPE_CHECKING:
    from driftline import bandit as bandit
    from driftline import checks as checks
    from driftline import comparators as comparators
    from driftline import decoders as decoders
    from driftline import detectors as detectors
    from driftline import domains as domains
    from driftline import estimators as estimators
    from driftline import features as features
    from driftline import losses as losses
    from driftline import members as members
    from driftline import polytopes as polytopes
    from driftline import rates as rates
    from driftline import regularizers as regularizers
    from driftline import sets as sets
    from driftline import streams as streams
    from driftline import sweeps as sweeps
    from driftline import tasks as tasks
    from driftline.app.runs import TableModel as TableModel
    from driftline.app.runs import TableTicket as TableTicket
    from driftline.certificates import certify as certify
    from driftline.client import Client as Client
    from driftline.client import ServiceError as ServiceError
    from driftline.committee import Committee as Committee
    from driftline.committee import CommitteeTrace as CommitteeTrace
    from driftline.committee import Guarded as Guarded
    from driftline.committee import auto as auto
    from driftline.errors import BusyError as BusyError
    from driftline.errors import InputError as InputError
    from driftline.errors import NoGuaranteeError as NoGuaranteeError
    from driftline.errors import TornError as TornError
    from driftline.estimators import DriftClassifier as DriftClassifier
    from driftline.estimators import DriftMultilabelClassifier as DriftMultilabelClassifier
    from driftline.estimators import DriftOrdinalClassifier as DriftOrdinalClassifier
    from driftline.estimators import DriftRanker as DriftRanker
    from driftline.estimators import DriftTagger as DriftTagger
    from driftline.explanation import Explanation as Explanation
    from driftline.explanation import explain as explain
    from driftline.explanation import explain_run as explain_run
    from driftline.keyed import Keyed as Keyed
    from driftline.keyed import KeyedTicket as KeyedTicket
    from driftline.keyed import KeyedTrace as KeyedTrace
    from driftline.learner import OGD as OGD
    from driftline.learner import Learner as Learner
    from driftline.learner import Member as Member
    from driftline.learner import Predictor as Predictor
    from driftline.learner import Round as Round
    from driftline.learner import Ticket as Ticket
    from driftline.state import State as State
    from driftline.state.loading import load as load
    from driftline.sweeps import sweep as sweep
    from driftline.trace import Sink as Sink
    from driftline.trace import Trace as Trace
    from driftline.trace import TraceFile as TraceFile

# Rooms and names are imported when they are first asked for, so that importing the
# package costs next to nothing.
_ROOMS = (
    "bandit",
    "certificates",
    "checks",
    "comparators",
    "decoders",
    "delays",
    "detectors",
    "domains",
    "estimators",
    "features",
    "losses",
    "members",
    "polytopes",
    "rates",
    "regularizers",
    "sets",
    "streams",
    "sweeps",
    "tasks",
)
_NAMES = {
    "BusyError": "errors",
    "InputError": "errors",
    "NoGuaranteeError": "errors",
    "TornError": "errors",
    "OGD": "learner",
    "Learner": "learner",
    "Member": "learner",
    "Predictor": "learner",
    "Keyed": "keyed",
    "KeyedTicket": "keyed",
    "KeyedTrace": "keyed",
    "Ticket": "learner",
    "State": "state",
    "CommitteeTrace": "committee",
    "Round": "learner",
    "Sink": "trace",
    "Trace": "trace",
    "TraceFile": "trace",
    "Committee": "committee",
    "Guarded": "committee",
    "auto": "committee",
    "certify": "certificates",
    "Explanation": "explanation",
    "explain": "explanation",
    "explain_run": "explanation",
    "load": "state.loading",
    "sweep": "sweeps",
    "Client": "client",
    "ServiceError": "client",
    "TableModel": "app.runs",
    "TableTicket": "app.runs",
    "DriftClassifier": "estimators",
    "DriftMultilabelClassifier": "estimators",
    "DriftOrdinalClassifier": "estimators",
    "DriftRanker": "estimators",
    "DriftTagger": "estimators",
}

__all__ = ["__version__", *_ROOMS, *_NAMES]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name in _NAMES:
        value = getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
