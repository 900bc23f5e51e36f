"""The data of one run in a report, from its trace or its journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from driftline.certificates import Certificate, CommitteeCertificate
from driftline.committee import CommitteeTrace
from driftline.errors import InputError
from driftline.explanation import Explanation, share_of_kinds
from driftline.inputs.taking import take_labels
from driftline.reports.changed_inputs import ChangedInput
from driftline.reports.key_table import KeyTable
from driftline.reports.time_axis import TimeAxis
from driftline.trace import Trace
from driftline.typing import Json, Labels

__all__ = ["WEIGHTED", "ReportData"]

#: The most blocks of rounds that a trace is summed up in.
BLOCKS = 1000

#: The most classes that are shown one by one.
MOST_CLASSES = 30

#: The unit of losses of rounds that do not all count once.
WEIGHTED = "weighted loss"


@dataclass
class ReportData:
    """One run: sums over blocks of rounds, bounds, and the explanation of the learner.

    ``ends`` is the round that each block ends before. ``columns`` has the sums of losses by name:
    ``loss`` is the learner's target loss, others are baselines. ``means`` has the mean of other
    quantities over blocks: the step ``eta``, its largest admissible value ``eta_high``, ``gap``,
    loss minus risk. ``weights`` has a row of members' weights for every block. If predictions are
    ``random``, bounds are of the expected loss; ``expected`` has its sums, None if unknown.
    ``explanation`` is that of the learner at the end, None if there is none. ``baselines`` says
    whether columns beside ``loss`` are those of baselines, which a learner should beat. ``times``
    say when rounds were, None if that is not known, and ``alarm_times`` when each alarm was.
    ``inputs`` are those that changed, None if they were not searched. ``sizes`` are the sample
    weights of every block, by default the number of its rounds. ``guess`` says what ``trivial`` is
    the loss of, and ``unanswered`` is the share of rounds without an answer, None if all have one.
    ``covered`` is in how many rounds of every block the label was in its set, with ``goal`` the
    share that is wanted, and ``set_sizes`` are the sizes of all sets of a block together; None
    without sets. ``delay_cost`` is what late labels have added to the bound of the best member, or
    to each bound of a single learner; negative where older weights were the better ones. ``keys``
    are those that have a learner each, None without keys. ``account`` has the mean of a guard's
    account over blocks, None without a champion, ``budget`` what it may be before the champion is
    refused, and ``guarded`` is a sentence on what champion and guard have paid.
    """

    name: str
    ends: np.ndarray
    columns: dict[str, np.ndarray]
    unit: str = "mistakes"
    means: dict[str, np.ndarray] = field(default_factory=dict)
    weights: np.ndarray | None = None
    members: list[str] = field(default_factory=list)
    alarms: list[int] = field(default_factory=list)
    changes: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    counts: np.ndarray | None = None
    bounds: dict[str, float | str] = field(default_factory=dict)
    trivial: float | None = None
    settings: Json = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    random: bool = False
    expected: np.ndarray | None = None
    explanation: Explanation | None = None
    baselines: bool = False
    times: TimeAxis | None = None
    alarm_times: list[str] = field(default_factory=list)
    inputs: Sequence[ChangedInput] | None = None
    sizes: np.ndarray = field(default_factory=lambda: np.zeros(0))
    guess: str = "guessing"
    unanswered: float | None = None
    covered: np.ndarray | None = None
    set_sizes: np.ndarray | None = None
    goal: float = 0.0
    delay_cost: float = 0.0
    keys: KeyTable | None = None
    account: np.ndarray | None = None
    budget: float = 0.0
    guarded: str = ""

    def __post_init__(self) -> None:
        """Count rounds, if there are no sample weights."""
        if not len(self.sizes):
            self.sizes = np.diff(np.r_[0, self.ends])

    @property
    def rounds(self) -> int:
        """How many rounds."""
        return int(self.ends[-1])

    @property
    def total(self) -> float:
        """The target loss in all."""
        return float(self.columns["loss"].sum())

    @property
    def share(self) -> float:
        """The mean target loss, by sample weights if there are any."""
        return self.total / (float(self.sizes.sum()) or 1.0)

    @classmethod
    def of(
        cls,
        trace: Trace | CommitteeTrace,
        labels: Labels = None,
        *,
        name: str = "run",
        certificate: Certificate | CommitteeCertificate | None = None,
        changes: Sequence[int] = (),
        classes: Sequence[str] | None = None,
    ) -> ReportData:
        """Return the data of a trace; with labels there is a confusion table.

        Where labels came late, rounds are those whose labels came, in that order.
        """
        if trace.arrival is not None:
            trace, labels = _in_order(trace, labels)
        if not len(trace):
            raise InputError("a run without rounds has no data")
        loss = np.asarray(trace.target_loss, float)
        ends, starts = _blocks(len(loss))
        certain = bool(np.isin(loss, (0.0, 1.0)).all())
        data = cls(
            name,
            ends,
            {"loss": np.add.reduceat(loss, starts)},
            unit="mistakes" if certain else "loss",
            alarms=trace.alarms.tolist(),
            changes=[int(c) for c in changes],
        )
        if trace.sample_weight is not None:
            data.sizes, data.unit = np.add.reduceat(trace.sample_weight, starts), WEIGHTED
        _chances(data, trace, starts)
        if isinstance(trace, CommitteeTrace):
            sizes = np.diff(np.r_[0, ends])[:, np.newaxis]
            shares = np.add.reduceat(trace.weights, starts, axis=0) / sizes
            configs = [member.config for member in trace.members]
            data.weights, data.members = share_of_kinds(shares, configs)
            data.settings = {"members": configs}
            best = int(np.argmin(trace.member_risk.sum(axis=0)))
            data.columns[f"best member ({best})"] = np.add.reduceat(
                trace.member_risk[:, best], starts
            )
        else:
            data.settings = dict(trace.config)
            _steps(data, trace, starts)
        answered = _answered(trace)
        if answered is not None:
            data.unanswered, data.unit = float(1.0 - answered.mean()), "cost"
        if labels is not None:
            _confusion(data, trace.prediction, labels, classes, answered)
        if certificate is not None:
            _bounds(data, certificate)
        return data


def _in_order(
    trace: Trace | CommitteeTrace, labels: Labels
) -> tuple[Trace | CommitteeTrace, Labels]:
    """Return the rounds whose labels came, in the order in which these came."""
    order = np.flatnonzero(trace.arrived)
    order = order[np.argsort(np.asarray(trace.arrival)[order], kind="stable")]
    if labels is not None:
        labels = take_labels(labels, order)

    def taken(one: Trace | CommitteeTrace, columns: dict[str, np.ndarray]) -> Any:
        own: dict[str, Any] = {name: column[order] for name, column in columns.items()}
        return replace(one, **(own | {"arrival": None}))

    if isinstance(trace, CommitteeTrace):
        members = tuple(taken(one, one.columns()) for one in trace.members)
        return replace(taken(trace, trace.own_columns()), members=members), labels
    return taken(trace, trace.columns()), labels


def _blocks(rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where blocks end and start."""
    ends = np.unique(np.linspace(0, rounds, min(rounds, BLOCKS) + 1).astype(int))[1:]
    return ends, np.r_[0, ends[:-1]]


def _chances(data: ReportData, trace: Trace | CommitteeTrace, starts: np.ndarray) -> None:
    """Set whether predictions are random, and their expected loss, which is unknown for a vote."""
    parts: list[Trace | CommitteeTrace] = [trace, *getattr(trace, "members", ())]
    certain = [np.allclose(part.risk, part.target_loss) for part in parts]
    data.random = not all(certain)
    if not certain[0]:
        data.expected = np.add.reduceat(trace.risk, starts)


def _answered(trace: Trace | CommitteeTrace) -> np.ndarray | None:
    """Return which rounds have an answer; None if predictions cannot be none."""
    first = trace.members[0] if isinstance(trace, CommitteeTrace) else trace
    config = first.config.get("decoder", first.config)
    if config.get("type") not in ("decoders.Abstain", "decoders.Answer"):
        config = config.get("task", {})
        if config.get("type") != "tasks.Abstaining":
            return None
    return np.asarray(trace.prediction >= 0)


def _steps(data: ReportData, trace: Trace, starts: np.ndarray) -> None:
    sizes = np.diff(np.r_[starts, len(trace)])
    high = np.minimum(trace.largest_eta, 1e12)
    known = np.where(high < 1e12, high, np.nan)
    data.means = {
        "eta": np.add.reduceat(trace.eta, starts) / sizes,
        "gap": np.add.reduceat(trace.loss - trace.risk, starts) / sizes,
    }
    if np.isfinite(known).any():
        data.means["eta_high"] = np.fmin.reduceat(known, starts)


def _confusion(
    data: ReportData,
    prediction: np.ndarray,
    labels: Labels,
    classes: Sequence[str] | None,
    answered: np.ndarray | None = None,
) -> None:
    """Set the confusion table, or for tags how often each was right."""
    made, truth = np.asarray(prediction), labels if isinstance(labels, list) else np.asarray(labels)
    if answered is not None:
        made, truth = made[answered], np.asarray(truth)[answered]
    if isinstance(truth, list) or truth.ndim > 2 or made.shape != truth.shape:
        return
    if made.ndim == 1:
        values = np.unique(np.r_[made, truth])
        if len(values) > MOST_CLASSES:
            return
        data.names = [str(v) if classes is None else str(classes[int(v)]) for v in values]
        data.counts = np.zeros((len(values), len(values)), dtype=np.int64)
        np.add.at(data.counts, (np.searchsorted(values, truth), np.searchsorted(values, made)), 1)
    elif np.isin(truth, (0, 1)).all() and truth.shape[1] <= 4 * MOST_CLASSES:
        data.names = [str(j) if classes is None else str(classes[j]) for j in range(truth.shape[1])]
        kinds = [(truth == 1) & (made == 1), (truth == 1) & (made == 0)]
        kinds += [(truth == 0) & (made == 1), (truth == 0) & (made == 0)]
        data.counts = np.stack([kind.sum(axis=0) for kind in kinds], axis=1)


def _bounds(data: ReportData, certificate: Certificate | CommitteeCertificate) -> None:
    data.bounds, data.trivial = certificate.bounds(), certificate.trivial
    one = certificate.members[0] if isinstance(certificate, CommitteeCertificate) else certificate
    data.guess = one.premises.guess.removeprefix("uniform ")
    data.findings = list(certificate.findings)
    if not isinstance(certificate, CommitteeCertificate):
        data.delay_cost = 0.0 if certificate.delayed is None else certificate.delayed.cost
