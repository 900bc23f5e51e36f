"""A tag for every position of a sequence, on a stream of sequences."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from driftline.errors import InputError
from driftline.estimators.base import DriftEstimator
from driftline.estimators.labels import Labels
from driftline.estimators.positions import Positions, checked_positions
from driftline.tasks import Sequence
from driftline.typing import Inputs, Json
from driftline.typing import Labels as Given

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["DriftTagger"]


@dataclass(eq=False, repr=False)
class DriftTagger(DriftEstimator):
    """Tag sequences of any length, under the Hamming loss per position, on a stream that drifts.

    ``X`` is a list of arrays or CSR matrices, one for each sequence, with a row of features for
    every position; or a list of lists of dicts, one for each position, from the names of features
    to numbers, True, or strings. ``y`` is a list of arrays of tags, strings or numbers. A sequence
    is a round. Tags are those of the first sequences, or those named by ``classes``: none can be
    added later.

    Parameters
    ----------
    learner
        ``"auto"``, ``"paper"``, or a function from a task to a learner.
    scaling
        Whether inputs are standardised as they come, for learners given by name.
    transitions
        Whether pairs of neighbouring tags have scores.
    columns
        To how many columns features by name are hashed; a string is a feature of its own, by name
        and value. Features that share a column are told apart by their signs only.
    epochs
        How often ``fit`` goes through the sequences.
    random_state
        The seed of the learner's random numbers, a ``RandomState``, or None for seed 0.

    Examples
    --------
    >>> from driftline.streams import PlantedSequences
    >>> stream = PlantedSequences(rounds=100, tags=3, seed=0)
    >>> names = np.array(["noun", "verb", "other"])
    >>> model = DriftTagger().fit(stream.inputs, [names[tags] for tags in stream.labels])
    >>> [len(tags) for tags in model.predict(stream.inputs[:3])] == [
    ...     len(tags) for tags in stream.labels[:3]]
    True
    >>> words = [[{"word": w, "first": i == 0} for i, w in enumerate(s)] for s in ("ab", "ba")]
    >>> model = DriftTagger().fit(words * 9, [["x", "y"], ["y", "x"]] * 9)
    >>> model.predict([[{"word": "b"}, {"word": "a"}]])[0].tolist()
    ['y', 'x']
    """

    _: KW_ONLY
    transitions: bool = True
    columns: int = 1 << 17

    def fit(self, X: Inputs, y: Given, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Start anew, and learn from sequences in their order: that of the stream.

        A sequence of sample weight h counts h times.
        """
        given = self._checked(X, reset=True).inputs, _tags(y)
        return self._learn_rounds(given, sample_weight, passes=self.epochs)

    def partial_fit(
        self,
        X: Inputs,
        y: Given,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Go on learning from sequences in their order."""
        first = "learner_" not in self.__dict__
        given = self._checked(X, reset=first).inputs, _tags(y)
        return self._learn_rounds(given, sample_weight, classes)

    def predict(self, X: Inputs) -> list[np.ndarray]:
        """Return the tags of every sequence: of a committee, its vote."""
        check_is_fitted(self)
        made = self.learner_.predict_rows(self._checked(X, reset=False).inputs)
        return [self.classes_[codes] for codes in made]

    def score(self, X: Inputs, y: Given) -> float:
        """Return the mean over sequences of the share of correct tags."""
        predicted, tags = self.predict(X), _tags(y)
        if list(map(len, predicted)) != list(map(len, tags)):
            raise InputError("expected a tag for every position of every sequence in X")
        pairs = zip(predicted, tags, strict=True)
        return float(np.mean([(made == own).mean() for made, own in pairs]))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.target_tags.required = True
        return tags

    def _start(self, y: list[np.ndarray], classes: npt.ArrayLike | None) -> None:
        labels = Labels(np.unique(np.concatenate(y)))
        if classes is not None:
            labels = Labels(np.union1d(labels.more(classes).names, classes))
        if len(labels) < 2:
            raise InputError(f"a tagger needs 2 tags or more, but there is {labels.names.tolist()}")
        self._labels, self.classes_ = labels, labels.sorted
        self._begin(self._task, scaling=self.scaling)

    @property
    def _task(self) -> Sequence:
        return Sequence(len(self._labels), transitions=self.transitions)

    def _codes(self, y: list[np.ndarray]) -> list[np.ndarray]:
        codes = []
        for t, tags in enumerate(y):
            own = self._labels.codes(tags)
            if own is None:
                raise InputError(
                    f"sequence {t} has tags {self._labels.new(tags).tolist()} that are not among "
                    f"{self.classes_.tolist()}: name all in the first call of partial_fit by "
                    "`classes`"
                )
            codes.append(own)
        return codes

    def _checked(self, X: Inputs, reset: bool) -> Positions:
        """Return sequences as the learner takes them, all with the same number of features."""
        made = checked_positions(X, self.columns)
        if not reset and made.features != self.n_features_in_:
            raise InputError(
                f"sequences have {made.features} features, but {self.n_features_in_} were expected"
            )
        if reset:
            self.n_features_in_ = made.features
        return made

    def _to_plain(self) -> Json:
        return self._labels.to_plain()

    def _from_plain(self, fitted: Json) -> None:
        self._labels = Labels.from_plain(fitted)
        self.classes_ = self._labels.sorted


def _tags(y: Given) -> list[np.ndarray]:
    """Return the tags of every sequence as an array."""
    arrays = [np.asarray(tags) for tags in y]
    for t, tags in enumerate(arrays):
        if tags.ndim != 1:
            raise InputError(f"label {t} must be a vector of tags, but has shape {tags.shape}")
    return arrays
