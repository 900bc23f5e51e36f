"""What people and programs look at: models, certificates and alarms as plain data."""

from __future__ import annotations

import math

from driftline.app.service.hosted import Hosted, Reader
from driftline.app.service.machine import Machine
from driftline.app.service.served import Served, TableServed
from driftline.typing import Json

__all__ = ["alarms_of", "certificate_of", "latest_of", "state_of", "states_of", "weights_of"]

#: How many features the weights of a model are told of.
FEATURES = 20
#: The most features of a model whose columns are explained: all are predicted with each exchanged.
EXPLAINED = 500


def states_of(machine: Machine) -> list[Json]:
    """Return all models; of one that is out of service, why it is."""
    gone = [
        {"name": own.name, "quarantined": own.why, "seq": own.seq, "at": own.at}
        for own in machine.quarantined.values()
    ]
    return [*map(state_of, machine.models.values()), *gone]


def state_of(hosted: Hosted) -> Json:
    """Return all of a model, with its curves."""
    made = latest_of(hosted) | hosted.served.about()
    for own, reader in zip(made["learners"], hosted.readers.values(), strict=True):
        own["since"] = reader.since
        own["alarms"] = reader.served.alarms
        own["curve"] = [[t, values] for t, values in reader.curve.points]
    return made


def latest_of(hosted: Hosted) -> Json:
    """Return the numbers of a model that change with every batch."""
    return {
        "name": hosted.name,
        "champion": hosted.readers[hosted.champion].name,
        "counts": hosted.counts.copy(),
        "outstanding": hosted.served.outstanding,
        "seq": hosted.seq,
        "created": hosted.created,
        "at": hosted.at,
        "learners": [_learner(hosted, reader) for reader in hosted.readers.values()],
    }


def _learner(hosted: Hosted, reader: Reader) -> Json:
    score = reader.served.score
    return {
        "name": reader.name,
        "answers": reader.number == hosted.champion,
        "rounds": score.rounds,
        "paid": score.paid,
        "baselines": score.baselines,
        "alarms_count": len(reader.served.alarms),
    }


def certificate_of(machine: Machine, hosted: Hosted) -> Json:
    """Return what was paid so far, and what is known to bound it."""
    served, score = hosted.served, hosted.served.score
    made: Json = {
        "model": hosted.name,
        "learner": hosted.readers[hosted.champion].name,
        "rounds": score.rounds,
        "paid": score.paid,
        "baselines": score.baselines,
        "outstanding": served.outstanding,
        "oldest_seconds": oldest_seconds(machine, hosted),
        "expired": hosted.counts["expired"],
    }
    if isinstance(served, TableServed):
        guarantee = served.model.guarantee()
        bound = guarantee.bound if math.isfinite(guarantee.bound) else None
        made |= {
            "best_member": guarantee.best,
            "bound": bound,
            "guessing": guarantee.guessing,
            "vacuous": None if bound is None else guarantee.vacuous,
            "reason": guarantee.no_bound,
        }
    return made


def oldest_seconds(machine: Machine, hosted: Hosted) -> float | None:
    """Return how long the oldest row has waited for its label, None if no row waits."""
    waiting = machine.log.waiting(hosted.number, machine.at + 1, 1)
    if not waiting:
        return None
    asked = machine.log.time_of(waiting[0][1])
    return None if asked is None else max(0, machine.at - asked) / 1000.0


def alarms_of(hosted: Hosted) -> Json:
    """Return the rounds after which losses were seen to have risen."""
    return {
        "model": hosted.name,
        "learners": {own.name: own.served.alarms for own in hosted.readers.values()},
    }


def weights_of(name: str, served: Served) -> Json:
    """Return which columns matter most to a learner, and which members have the most weight."""
    none: Json = {"model": name, "importance": [], "members": []}
    if not isinstance(served, TableServed) or served.model.rounds < 2 or served.model.ranks:
        return none
    if served.model.features > EXPLAINED:
        return none
    made = served.model.explain()
    known = dict(zip(made.names, made.importance.tolist(), strict=True))
    members = sorted(made.weights.items(), key=lambda pair: -pair[1])
    return {
        "model": name,
        "importance": [[own, known[own]] for own in made.order[:FEATURES]],
        "members": [[own, share] for own, share in members[:FEATURES]],
    }
