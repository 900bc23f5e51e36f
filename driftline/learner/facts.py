"""What committees, audits and reports ask of a learner beside its rounds: facts, in one value."""

from __future__ import annotations

from dataclasses import dataclass

from driftline.theorem import AprioriBound

__all__ = ["Facts"]


@dataclass(frozen=True)
class Facts:
    """Facts of a learner as it is now; nobody asks it for its class.

    Parameters
    ----------
    feedback
        What is learned from: ``"full"`` for labels, ``"bandit"`` for hits and misses alone,
        ``"clicks"`` for judgements of what was shown, ``"losses"`` for losses.
    steps
        Whether rounds are gradient steps, which an audit repeats with the recorded step sizes. The
        rounds of others are played again.
    nats
        The factor from the recorded loss to ``-ln p(label)``, None without probabilities. Members
        that have one count in a committee's :class:`~driftline.committee.beliefs.Beliefs`.
    certain
        Whether predictions are deterministic: then risks are target losses.
    takes_top
        Whether the prediction depends on scores alone, and is the one of highest score.
    form
        What :func:`driftline.auto` lets it read of categories: a form of a block.
    restarts
        Whether the learner starts again at an alarm.
    fuses
        Whether a round can be played together with other members' in one compiled call.
    searchable
        Whether weights in hindsight, a comparator, can be searched for.
    never_refuses
        Whether no finite row of modest size can be refused, by overflow or otherwise.
    in_short
        The learner in a few words, for tables.
    no_theorem
        Why no theorem bounds the learner's loss beforehand, "" if one does.
    apriori_bound
        The bound that a theorem gives before the first round, None if none does.
    largest_input
        The largest norm of an input so far, times the root of its sample weight.
    """

    feedback: str = "full"
    steps: bool = False
    nats: float | None = None
    certain: bool = True
    takes_top: bool = True
    form: str = "codes"
    restarts: bool = False
    fuses: bool = False
    searchable: bool = False
    never_refuses: bool = False
    in_short: str = ""
    no_theorem: str = ""
    apriori_bound: AprioriBound | None = None
    largest_input: float = 0.0
