"""A committee for every key of a table, with the encoder of its columns, in one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from driftline.app.runs.baselines import baselines_of
from driftline.app.runs.key_scores import KeyScores
from driftline.app.runs.model import Model, Played
from driftline.app.tables import Encoder
from driftline.committee import named
from driftline.errors import InputError
from driftline.keyed import Keyed
from driftline.keyed.images import fits_shared
from driftline.reports import KeyTable
from driftline.state.loading import DAMAGE, loaded
from driftline.typing import Inputs, Json, Labels, Prediction, Saved

__all__ = ["KeyedModel"]

#: The prefix of the names of arrays of the scores.
SCORES = "scores."

#: The name of a learner over the rows of all keys.
ONE = "one for all"

#: What ``auto`` is for keys, most of which have few rows: a line-up that costs kilobytes a key.
LIGHT = "fast"


class KeyedModel(Model):
    """Committees by key, and the encoder that makes inputs, labels and keys for them.

    Every key has baselines of its own, in :attr:`scores`.
    """

    learner: Keyed

    def __init__(self, learner: Keyed, encoder: Encoder, about: str = ""):
        super().__init__(learner, encoder, baselines_of(learner.task), about)
        self.scores = KeyScores(learner.task, self.others)

    @classmethod
    def new(
        cls, name: str, encoder: Encoder, seed: int | None = 0, start: str | None = None
    ) -> KeyedModel:
        """Return a new model, by the name of its learner.

        ``start`` is how a key begins: ``zero``, or ``shared``, as a committee over all keys is by
        then; by default so where the learner can.
        """
        given: Any = {"seed": seed, "categories": encoder.categories}
        learner = named(LIGHT if name == "auto" else name, encoder.labels.task, **given)
        if start is None:
            start = "shared" if fits_shared(learner) and not encoder.sparse else "zero"
        if start == "shared" and encoder.sparse:
            raise InputError(
                "--start shared is for dense rows, and these are sparse: say --start zero"
            )
        if start == "shared" and not fits_shared(learner):
            raise InputError(
                f"--start shared is for learners that are all weights, as fast is, and not for "
                f"{name}: say --start zero, or --learner fast"
            )
        return cls(Keyed(learner, start=start), encoder, name)

    # -- facts

    @property
    def rounds(self) -> int:
        """How many rounds were learned from."""
        return int(self.scores.rounds.sum())

    @property
    def weight(self) -> float:
        """The weights of all rounds together."""
        return float(self.scores.sums[:, 0].sum())

    @property
    def waits(self) -> int:
        """How many labels are still to come: none."""
        return 0

    @property
    def alarms(self) -> Sequence[int]:
        """No rounds: alarms are those of single keys."""
        return ()

    @property
    def random(self) -> bool:
        """Whether predictions are random, so that losses differ from expected losses."""
        return not all(member._fixed.certain for member in self.learner.prototype.combined)

    @property
    def columns(self) -> list[str]:
        """No names: members of one key are not those of another."""
        return []

    @property
    def others(self) -> tuple[str, ...]:
        """The learner over all keys, if there is one: it says whether keys are of any use."""
        return (ONE,) if self.learner.start == "shared" else ()

    @property
    def far_outside(self) -> dict[str, int]:
        """No columns: what is far outside is so for one key, and may be usual for others."""
        return {}

    def describe(self) -> str:
        """Say which committee every key has, and which theorem applies."""
        begin = (
            "as a committee over all keys is by then"
            if self.learner.start == "shared"
            else "at zero"
        )
        return f"{len(self.learner):,} keys, which begin {begin}; each:\n" + (
            self.learner.prototype.describe()
        )

    def table(self) -> KeyTable:
        """Return what a report tells of keys."""
        return self.scores.table(self.encoder.key or "", self.learner.alarms)

    # -- rounds

    def learn(
        self,
        inputs: Inputs,
        labels: Labels,
        weights: np.ndarray | None = None,
        keys: Sequence[str] | None = None,
        audit: bool = False,
        probabilities: bool = False,
    ) -> Played:
        """Play rounds, each by the committee of its key; classes that are new are added first."""
        keys = _given(keys)
        learner, classes = self._grown(labels)
        weights, balance = self._balanced(labels, weights)
        trace = learner.run(keys, inputs, labels, sample_weight=weights)
        self.learner, self.classes, self.balance = learner, classes, balance
        others = trace.shared_target_loss[:, np.newaxis] if self.others else None
        self.scores.add(keys, trace.target_loss, trace.member_risk, weights, others)
        self.loss += float(trace.target_loss.sum())
        self.predicted += len(trace)
        return Played(trace.prediction, trace.target_loss, weights, {}, others)

    def predict(self, inputs: Inputs, keys: Sequence[str] | None = None) -> Sequence[Prediction]:
        """Return what every row would have predicted next; a key that is new is as at its start."""
        return self.learner.predict_rows(_given(keys), inputs)

    def next_predictions(
        self, inputs: Inputs, keys: Sequence[str] | None = None
    ) -> Sequence[Prediction]:
        """Return what would be predicted for each row if it came next."""
        return self.predict(inputs, keys)

    def beside(
        self,
        labels: Labels,
        weights: np.ndarray | None = None,
        keys: Sequence[str] | None = None,
    ) -> np.ndarray:
        """Return what the baselines of keys pay for the next labels, times their weights."""
        return self.scores.beside(_given(keys), labels, weights)

    # -- files

    def to_saved(self) -> Saved:
        """Return all of the model as plain data and arrays."""
        about, arrays = super().to_saved()
        about["scores"], own = self.scores.to_saved()
        about["score keys"] = self.scores.keys
        return about, arrays | {f"{SCORES}{name}": array for name, array in own.items()}

    @classmethod
    def from_saved(cls, path: str | Path, about: Json, arrays: dict[str, np.ndarray]) -> KeyedModel:
        """Return the model from the content of a file."""
        learner = loaded(path, about, arrays)
        try:
            run = about["run"]
            made = cls(learner, Encoder.from_config(about["table"]), str(run["name"]))
            own = {k.removeprefix(SCORES): a for k, a in arrays.items() if k.startswith(SCORES)}
            keys = [str(key) for key in about["score keys"]]
            given = (learner.task, made.others, keys, about["scores"], own)
            made.scores = KeyScores.from_saved(*given)
            made._resume(run)
            if made.encoder.key is None or {*keys} != {*learner}:
                raise InputError("its keys are not those of its learners")
            members = len(learner.learner(keys[0]).members) if keys else made.scores.members
            if made.scores.members != members:
                raise InputError(f"{made.scores.members} losses a key are not of {members} members")
        except DAMAGE as error:
            raise InputError(f"{path} is damaged or was edited: {error}") from error
        return made


def _given(keys: Sequence[str] | None) -> list[str]:
    """Return the keys of rows, which have to be there."""
    if keys is None:
        raise InputError("rows of this model have a key each: expected these beside the rows")
    return list(keys)
