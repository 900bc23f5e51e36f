r"""A classifier of River, or anything that learns and predicts as these do, in a committee.

A model is asked for the chances :math:`q` of the classes, and a little is given to each, so that
no mistake costs infinitely many nats:

.. math:: s_k = \ln \big((1 - \varepsilon)\, q_k + \varepsilon / K\big), \qquad \varepsilon = 0.001.

The class of highest score is predicted, and the recorded loss is :math:`-s_y`. Rows are
dictionaries from the number of a feature to its value; of sparse rows, those that are there.

A model is code with a state that only its library knows. So it lives in memory: it is copied by
``copy.deepcopy``, and a file has its name alone. A learner of this library is in the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from driftline.errors import InputError
from driftline.features import Map, Raw
from driftline.inputs import Rows
from driftline.learner import Growth, Learner, Member
from driftline.members.classes import EVEN, ClassMember
from driftline.members.models import Absent, Given, asked, check_model, copied, row_of
from driftline.parts import check_flag, from_config
from driftline.state import State
from driftline.tasks import Task
from driftline.typing import Json, Label

__all__ = ["River", "member_of"]

#: Why no theorem bounds the loss beforehand: the model may do anything.
UNKNOWN = "nothing is known of what a model of another library does"


class River(ClassMember):
    """A classifier of River as a member: it learns by ``learn_one`` and is asked for chances.

    Anything will do that has ``learn_one(x, y)``, and ``predict_proba_one(x)`` or
    ``predict_one(x)``, which must change nothing. Classes are whole numbers, and signs False and
    True. The model itself is left alone: a copy of it learns.

    A learner with such a member can be copied, restored and certified in memory. Its file has the
    name of the model, and ``dl.load(path, model=...)`` takes the model again: ``member.model`` is
    what has learned, and is to be saved by the means of its library.

    Parameters
    ----------
    task
        Classes or signs.
    model
        The classifier. It may have learned before.
    trusted
        Whether the model is trusted never to raise. Else it is copied before every single step, so
        that one that is refused changes nothing; a run copies it once. If one that is trusted
        raises in a step, what it has learned from the row is not taken back, and a committee
        around it does not go on.
    features
        A map of inputs, such as ``dl.features.Standardise()``.

    Examples
    --------
    >>> import driftline as dl
    >>> class Last:  # or river.tree.HoeffdingTreeClassifier()
    ...     said = None
    ...     def learn_one(self, x, y): self.said = y
    ...     def predict_one(self, x): return self.said
    >>> stream = dl.streams.DigitTriples(rounds=300, flips=0, seed=0)
    >>> last = dl.members.River(stream.task, Last())
    >>> loss = dl.losses.Scaled(dl.losses.Logistic(stream.task), 2.0)
    >>> committee = dl.Committee([last, dl.OGD(loss, dl.decoders.Argmax(loss))])
    >>> trace = committee.run(stream)
    >>> last.rounds, bool(dl.certify(trace, None, stream).valid)
    (300, True)
    """

    _opaque = ("model",)

    def __init__(
        self,
        task: Task,
        model: Any,
        *,
        trusted: bool = False,
        features: Map | None = None,
        seed: int | None = 0,
    ):
        check_flag("trusted", trusted)
        check_model(model)
        super().__init__(task, features, {}, seed)
        if self._classes > 2 and getattr(model, "_multiclass", None) is False:  # as River says it
            raise InputError(
                f"{type(model).__name__} is for two classes, not {self._classes}: wrap it, as by "
                "river.multiclass.OneVsRestClassifier"
            )
        self.trusted = bool(trusted)
        self._fixed = replace(ClassMember._fixed, never_refuses=self.trusted, no_theorem=UNKNOWN)
        #: The model as it is now.
        self.model = copied(model)
        self._words = type(model).__name__
        #: The classes as the model knows them.
        self._codes = {False: 0, True: 1} if self._sign else {k: k for k in range(self._classes)}
        self._copy: tuple[int, Any] | None = None  # of the model, after so many rounds

    # -- facts

    def _config(self) -> Json:
        """Return all but the model as plain data, and that in words."""
        made = {"kind": "River", "task": self.task.config(), "trusted": self.trusted}
        made["model"] = self._words
        return made if self.map is None else made | {"features": self.map.config()}

    def __repr__(self) -> str:
        """Name the task, the model and the map."""
        return f"River({self.task!r}, {self._words}, features={self.map!r})"

    # -- rounds

    def _class_scores(self, rows: Rows) -> np.ndarray:
        made = [self._row_scores(rows, t, row_of(rows, t)) for t in range(rows.rounds)]
        return np.array(made).reshape(rows.rounds, self._classes)

    def _row_scores(self, rows: Any, t: int, x: dict[int, float]) -> np.ndarray:
        """Return the logarithms of the chances of one row."""
        found = self._call(rows, t, asked, self.model, x)
        chances = np.zeros(self._classes)
        try:
            for label, chance in found.items():
                chances[self._codes[label]] = chance
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            raise self._refusal(
                rows, t, f"predicted {found!r:.80}: expected chances of {list(self._codes)!r:.80}"
            ) from None
        if not (np.isfinite(chances).all() and (chances >= 0.0).all()):
            raise self._refusal(rows, t, f"gave the chances {found!r:.80}")
        largest = float(chances.max())
        if largest == 0.0:
            return np.full(self._classes, -math.log(self._classes))
        chances /= largest  # sums of huge or tiny ones are not to be trusted
        scores: np.ndarray = np.log((1.0 - EVEN) * chances / chances.sum() + EVEN / self._classes)
        return scores

    def _call(self, rows: Any, t: int, method: Callable[..., Any], *given: Any) -> Any:
        """Call the model; what it raises refuses the row."""
        try:
            return method(*given)
        except Exception as error:
            words = f"raised {type(error).__name__}: {error}"
            raise self._refusal(rows, t, words) from error

    def _refusal(self, rows: Any, t: int, words: str) -> InputError:
        where = "the input" if rows.before + rows.rounds == 1 else f"row {rows.before + t}"
        return InputError(f"{where}: the model {self._words} {words}")

    def _learned_rows(
        self, rows: Rows, start: int, stop: int, codes: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """Predict row by row and learn; the model is told of a weight that is not 1, as ``w``."""
        scores = np.empty((stop - start, self._classes))
        for i, t in enumerate(range(start, stop)):
            x, code = row_of(rows, t), int(codes[i])
            scores[i] = self._row_scores(rows, t, x)
            if weights[i] > 0.0:
                learn, weight = self.model.learn_one, float(weights[i])
                learn = learn if weight == 1.0 else partial(learn, w=weight)
                self._call(rows, t, learn, x, code == 1 if self._sign else code)
        return scores

    def _learn_one_mapped(
        self, row: Rows, label: Label, number: int
    ) -> tuple[np.ndarray, np.ndarray]:
        before = None if self.trusted else self._frozen()
        try:
            return super()._learn_one_mapped(row, label, number)
        except BaseException:
            if before is not None:
                self.model = copied(before)
            raise

    # -- the state as a value

    def _frozen(self) -> Any:
        """Return a copy of the model as it is, which nobody changes: one for a round."""
        if self._copy is None or self._copy[0] != self._rounds:
            self._copy = self._rounds, copied(self.model)
        return self._copy[1]

    def _keep(self, name: str) -> Any:
        return self._frozen()

    def _back(self, name: str, kept: Any) -> Any:
        self._copy = None
        return copied(kept)

    def _memory_fields(self, weights: bool) -> dict[str, Any]:
        return {"model": self._frozen()}

    def _checked(self, state: State) -> State:
        if state.model is None or state.memory is not None or state.weights is not None:
            raise InputError(f"expected a state of a model in memory, but got {state!r:.80}")
        return state.replaced(model=self._model_of(state.model))

    def _resume(self, state: State) -> None:
        self.model, self._copy = copied(state.model), None

    def _for_task(self, task: Task) -> Self:
        made = type(self)(task, Absent(), trusted=self.trusted, features=self.map)
        made._words = self._words
        return made

    def _own_bytes(self, width: int, task: Task) -> int:
        return 0  # nobody knows

    def _filled(self, origin: State | None, keep: bool) -> State | None:
        return origin

    def _model_of(self, saved: Any) -> Any:
        """Return the model of a state, if it can be one of this member."""
        if not isinstance(saved, tuple):
            check_model(saved)
            return saved
        made = Given.from_saved(*saved)
        if len(made.codes) > self._classes or made.sign != self._sign:
            known = list(made.codes)
            raise InputError(f"the model knows {known!r:.80}, and not the labels of {self.task!r}")
        return made

    def _add(self, made: Self, state: State, more: Growth) -> State:
        known = self._width
        if more.places is None:
            return state
        if not np.array_equal(more.places[:known], np.arange(known or 0)):
            raise InputError(f"{self!r} knows features by their number, and these would move")
        return state.replaced(features=len(more.places))

    # -- files

    @classmethod
    def from_config(cls, config: Json) -> Self:
        """Return a member as :meth:`_config` says it was made; a state brings the model."""
        task, features = from_config(config["task"]), from_config(config.get("features"))
        made = cls(task, Absent(), trusted=config["trusted"], features=features)
        made._words = str(config["model"])
        return made


def member_of(model: Any, task: Task, classes: Sequence[Any] | None = None) -> Member:
    """Return a model of any kind as a member that sees rows as they come.

    A classifier of River learns, and so does a copy of a learner; a fitted estimator and a function
    of a row stay as they are. ``classes`` are the names of classes 0, 1, ... as the
    model has them; by default those of the task.

    >>> import driftline as dl
    >>> member_of(lambda row: 1, dl.tasks.Multiclass(3))
    River(Multiclass(classes=3), Given, features=Raw())
    """
    if not task.geometry.classes:
        raise InputError(f"models of other libraries predict classes and signs, not {task!r:.80}")
    if hasattr(model, "learn_one") and not isinstance(model, type):
        return River(task, model, features=Raw())
    if isinstance(model, type) or not (callable(model) or hasattr(model, "predict")):
        raise InputError(
            "expected a learner, a fitted estimator, a classifier of River or a function of a row, "
            f"not {model!r:.80}"
        )
    names = list(task.answers.labels.all) if classes is None else list(classes)
    if len(names) != len(list(task.answers.labels.all)):
        raise InputError(f"classes= must name the labels of {task!r:.80}, but has {len(names)}")
    kept = model.copy() if isinstance(model, Learner) else model
    made = Given(kept, names, sign=task.labels.signs)
    return River(task, made, trusted=True, features=Raw())
