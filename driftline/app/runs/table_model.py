"""A model of a table for programs: rows by the names of their columns in, names of labels out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

import numpy as np

from driftline.app.runs.committee_model import CommitteeModel
from driftline.app.runs.guarantee import Guarantee, guarantee_of
from driftline.app.runs.model import Model
from driftline.app.runs.models import model_from, new_model
from driftline.app.runs.queries import Queries
from driftline.app.runs.table_ticket import TableTicket
from driftline.app.tables import Batch, Encoder, Options, guess
from driftline.app.tables.columns import ReadRow
from driftline.app.tables.encoder import close_to
from driftline.app.tables.given import GivenRows, text_of
from driftline.app.tables.labels import CODECS
from driftline.committee import Committee
from driftline.committee.pooling import chances_of
from driftline.errors import InputError
from driftline.explanation import Explanation, explain
from driftline.learner import Shield
from driftline.parts import check_flag, check_number, check_whole
from driftline.typing import Inputs, Json, Saved

__all__ = ["TableModel"]

#: Up to so many rounds are learned from without a copy of the learner.
FEW = 10

Made = TypeVar("Made")


class TableModel:
    """What was learned of a table, by the names of its columns and labels.

    :func:`driftline.load` returns it for a model of ``driftline run``; :meth:`new` makes one.

    Rows are given as the table has them: a dict by the names of its columns, a list of dicts, a
    data frame, or an array with the columns in the order of :attr:`columns`. One row in gives one
    answer, several rows give a list. A value that is not given is missing; columns of the label
    and those that were left out when the model was made may be there or not. Where the table had
    index:value pairs, rows are an array or a CSR matrix, and those of a ranking are one query.

    Where a column says whose a row is (``key``), every key has a learner of its own: rows are
    predicted and learned from with their keys, and tickets, probabilities and sets are for others.
    Where a column has a model's predictions (``champion``), a row may do without it.

    Threads may predict while one learns; those that learn or save wait for each other.

    Examples
    --------
    >>> import driftline as dl
    >>> rows = [
    ...     {"age": 20 + i % 50, "plan": plan, "will": "go" if plan == "free" else "stay"}
    ...     for i, plan in enumerate(["pro", "free"] * 100)
    ... ]
    >>> model = dl.TableModel.new(rows, label="will", learner="fast")
    >>> before = model.learn(rows)
    >>> model
    TableModel(classes of 'will' from 2 columns, 200 rounds)
    >>> model.predict({"age": 44, "plan": "pro"})
    'stay'
    >>> chances = model.predict_proba({"age": 44, "plan": "pro"})
    >>> sorted(chances), bool(chances["stay"] > 0.9)
    (['go', 'stay'], True)
    >>> model.learn({"age": 31, "plan": "free"}, "go"), model.rounds
    ('go', 201)
    """

    def __init__(self, model: Model):
        self._model = model
        self._lock = RLock()  # held while columns and learner change together

    @classmethod
    def new(
        cls,
        rows: Any,
        label: str | Sequence[str],
        *,
        learner: str = "auto",
        seed: int = 0,
        coverage: float | None = None,
        **options: Any,
    ) -> TableModel:
        """Return a model for rows like these, from which nothing is learned yet.

        Parameters
        ----------
        rows
            Dicts or a data frame: what columns hold is guessed from all of them, as ``driftline
            run`` does from the first rows of a file.
        label
            The column to predict, or several of tags; a pattern such as ``tag_*`` stands for all.
        learner, seed
            By the name that ``driftline run --help`` lists.
        coverage
            The share of rows whose label is to be in its :meth:`predict_set`; None for no sets.
        options
            As on the command line: ``task``, ``ignore``, ``text``, ``query``, ``levels``,
            ``missing``, ``highest``, ``time``, ``weight``, ``balance``, ``abstain``, ``key``,
            ``champion``.
        """
        given = GivenRows.of(rows, ())
        chosen = _options(label=label, **options)
        if not len(given):
            raise InputError("what columns hold is guessed from rows: give some")
        encoder, _ = guess(given, given, chosen)
        return cls(new_model(learner, encoder, seed, coverage))

    def fresh(self, learner: str = "auto", seed: int = 0) -> TableModel:
        """Return a model for the same columns and labels that has learned nothing yet."""
        encoder = Encoder.from_config(self._model.encoder.config())
        if not isinstance(encoder.columns, int):
            encoder.columns.sums[:], encoder.columns.counts[:] = 0.0, 0.0
        sets = self._model.sets
        coverage = None if sets is None else sets.part.coverage
        return TableModel(new_model(learner, encoder, seed, coverage))

    # -- facts

    @property
    def learner(self) -> Any:
        """The committee that learns: it knows features and numbers of labels, not names.

        Where every key has one, all of them: a :class:`~driftline.Keyed`.
        """
        return self._model.learner

    @property
    def key(self) -> str | None:
        """The column that says whose a row is, None if there is one learner for all rows."""
        return self._model.encoder.key

    @property
    def _one(self) -> CommitteeModel:
        """The model, if it has one learner."""
        if not isinstance(self._model, CommitteeModel):
            raise InputError(
                f"every {self.key} has a learner of its own: predict and learn take rows, and "
                "model.learner.learner(key) returns that of one key for anything else"
            )
        return self._model

    @property
    def rounds(self) -> int:
        """How many rounds were learned from."""
        return self._model.rounds

    @property
    def alarms(self) -> np.ndarray:
        """The rounds after which losses were seen to have risen, counted from 0."""
        return self._one.alarms

    @property
    def task(self) -> str:
        """What is predicted: ``classes``, ``levels``, ``tags`` or a ``ranking``."""
        return self._model.encoder.labels.kind

    @property
    def columns(self) -> list[str]:
        """The columns that it predicts from, in the order that rows without names have."""
        encoder = self._model.encoder
        if isinstance(encoder.columns, int):
            return encoder.feature_names
        named = (encoder.query, encoder.key, encoder.champion)
        more = [name for name in named if name is not None]
        return [*encoder.columns.names, *more]

    @property
    def features(self) -> int:
        """How many features its columns become."""
        return self._model.encoder.features

    @property
    def has_names(self) -> bool:
        """Whether its columns have names; rows of index:value pairs have none."""
        return not isinstance(self._model.encoder.columns, int)

    @property
    def label(self) -> list[str]:
        """The columns that are predicted."""
        return list(self._model.encoder.labels.names)

    @property
    def classes(self) -> list[str]:
        """Classes, levels or tags by name; none of a ranking."""
        return list(self._model.encoder.labels.outcomes)

    @property
    def ranks(self) -> bool:
        """Whether documents are ranked: then the rows of a query are predicted together."""
        return self._model.task.layout.ragged

    @property
    def name(self) -> str:
        """The name of the learner, as ``driftline run --learner`` calls it."""
        return self._model.about

    @property
    def paid(self) -> float:
        """The sum of its losses, each of a prediction before the label was seen."""
        return self._model.loss

    @property
    def baselines_paid(self) -> dict[str, float]:
        """What baselines paid for the same labels, by name."""
        names, losses = self._model.baselines.names, self._model.baseline_losses.tolist()
        return dict(zip(names, losses, strict=True))

    def __repr__(self) -> str:
        """Say what is predicted from how many columns, and after how many rounds."""
        label, count = ", ".join(self.label[:3]), len(self.columns)
        return f"TableModel({self.task} of {label!r} from {count} columns, {self.rounds} rounds)"

    def guarantee(self) -> Guarantee:
        """Return what was paid since the first round, and what bounds it without an audit."""
        with self._lock:
            return guarantee_of(self._model, None)

    def describe(self) -> str:
        """Say which learner is behind it, and which theorem applies."""
        return self._model.describe()

    # -- predicting and learning

    def predict(self, rows: Any) -> Any:
        """Return what is predicted: a class or level by name, a list of tags, a rank from 0.

        With ``abstain``, None is no answer.
        Nothing is learned. Rows of a ranking that belong to the same query stand together, and
        every row has its rank among them.
        """
        given = self._given(rows)
        batch = self._batch(given, labelled=False, learning=False)
        made = self._model.predict(self._inputs(batch), batch.keys) if len(given) else []
        return self._answer(given, self._named(made))

    def predict_proba(self, rows: Any) -> Any:
        """Return the probability of every class, level or tag, by name: a dict a row."""
        given, (learner, names) = self._given(rows), self._learner_and_names()
        if not names:
            raise InputError("a ranking has no probabilities: ask for predict")
        inputs = self._inputs(self._batch(given, labelled=False, learning=False))
        if not len(given):
            return []
        return self._answer(given, _named_chances(names, chances_of(learner, inputs)))

    def predict_set(self, rows: Any) -> Any:
        """Return a set of classes or levels for every row, by name: a list, the likeliest first.

        For models that were made with sets: see ``coverage`` of :meth:`new`, ``driftline run
        --sets``, and :class:`driftline.sets.Adaptive` for what they promise.
        """
        given, (learner, names) = self._given(rows), self._learner_and_names()
        level = self._model.sets
        if level is None:
            raise InputError("the model has no sets: make it with coverage=0.9, say, or --sets 0.9")
        inputs = self._inputs(self._batch(given, labelled=False, learning=False))
        if not len(given):
            return []
        chances = chances_of(learner, inputs)
        return self._answer(given, _named_sets(names, chances, level.sets(chances)))

    def learn(self, rows: Any, labels: Any = None) -> Any:
        """Learn from rows in their order; return what was predicted before each label was seen.

        Parameters
        ----------
        rows
            As for :meth:`predict`.
        labels
            Of one row, or a list of them: names of classes or levels, for tags a list of those that
            are set, or a 0 or 1 for each; grades. Default: the label's columns of the rows.
        """
        given, codec = self._given(rows), self._model.encoder.labels
        if labels is not None:
            given = given.with_columns(self._label_cells(given, labels))
        known = set(given.columns)
        absent = [name for name in codec.names if name not in known]
        if absent:
            raise InputError(
                f"there are no labels: expected them beside the rows, or columns {absent} in these"
            )
        if not len(given):
            return []
        with self._lock:
            made = self._whole(len(given), lambda: self._learn(given))
        return self._answer(given, self._named(made))

    def _whole(self, rounds: int, work: Callable[[], Made]) -> Made:
        """Learn from some rounds: all of them, or nothing if anything is raised.

        A copy of the learner takes longer than a few rounds: in these an interrupt is delayed.
        """
        if rounds > FEW:
            return self._undone(True, work)
        with Shield():
            return self._undone(False, work)

    def _undone(self, copies: bool, work: Callable[[], Made]) -> Made:
        """Call a function, and go back to before it if anything is raised."""
        before = _Before(self._model, copies)
        try:
            return work()
        except BaseException:
            before.go_back()
            raise

    def _learn(self, given: GivenRows) -> Any:
        """Learn from rows with labels and return what was predicted."""
        model = self._model
        if waits := model.waits:
            last = int(model.learner._late_numbers[-1])
            raise InputError(
                f"labels of {waits} rows of its run are still to come: go on by driftline run "
                f"--resume, or forget these rows by forget(before={last + 1})"
            )
        alone = isinstance(model, CommitteeModel) and len(given) == 1
        alone = alone and not model.weighs and model.sets is None
        weights = None
        batch = self._batch(given, labelled=True, learning=True)
        inputs, grades = self._rounds(batch)
        if alone and not model.task.layout.ragged:
            made: Any = [self._one.learn_one(inputs[:1], grades[0])]
        else:
            rounds = inputs, grades, batch.weights, batch.keys
            played = model.learn(*rounds, probabilities=model.sets is not None)
            made, weights = played.prediction, played.weights
            if model.sets is not None and played.probabilities is not None:
                model.sets.play(played.probabilities, np.asarray(grades), known=played.known)
        model.count_labels(grades, batch.keys, weights)
        return made

    @property
    def blank_row(self) -> dict[str, str]:
        """A row that fits the columns, and says nothing."""
        columns = self._model.encoder.columns
        if isinstance(columns, int):
            raise InputError("rows of index:value pairs have no columns")
        texts = {"number": "0", "amount": "0", "flag": "false"}
        made = {c.name: texts.get(c.kind, (*c.categories, "")[0]) for c in columns.columns}
        encoder = self._model.encoder
        return made | {name: "0" for name in (encoder.query, encoder.key) if name is not None}

    def check(self, rows: Sequence[Any]) -> list[Any]:
        """Refuse rows that :meth:`ask` would refuse.

        Return them as :meth:`ask`, :meth:`ask_proba` and :meth:`look` take them in lists, with
        cells that are read already: not those of a ranking, of sparse features or with a champion,
        which are returned as they are.

        >>> import driftline as dl
        >>> rows = [{"age": 20 + i, "will": "go" if i < 25 else "stay"} for i in range(50)]
        >>> model = dl.TableModel.new(rows, label="will", learner="fast")
        >>> (row,) = model.check([{"age": "22"}])
        >>> row.values, model.ask([row])[0].prediction
        (array([22.]), 'go')
        """
        self._check_tickets()
        given, rows = self._given(list(rows)), list(rows)
        encoder = self._model.encoder
        columns, more = encoder.columns, encoder.query is not None or encoder.champion is not None
        if not len(given):
            return []
        with self._lock:
            if more or isinstance(columns, int) or columns.sparse:
                self._inputs(self._batch(given, labelled=False, learning=False))
                return rows
            bound = encoder.bind(given, labelled=False, learning=False)
            read = bound.batch(given, filled=False).inputs
            return [ReadRow(row, columns, own) for row, own in zip(rows, read, strict=True)]

    def check_labels(self, labels: Sequence[Any]) -> list[str]:
        """Refuse labels that :meth:`tell` would refuse, whatever the row is; return new classes."""
        codec = self._model.encoder.labels
        with self._lock:
            known = len(codec.values)

            def check() -> list[str]:
                self._codes(labels)
                new = list(codec.values[known:])
                if new:
                    codec.forget(known)
                return new

            return self._undone(False, check)

    def state_bytes(self, classes: int | None = None) -> int:
        """Return about how many bytes the learner's arrays have, also before there are any.

        With more classes than there are now if ``classes`` says so.

        >>> import driftline as dl
        >>> rows = [{"age": 20 + i, "will": "go" if i < 25 else "stay"} for i in range(50)]
        >>> model = dl.TableModel.new(rows, label="will")
        >>> [round(model.state_bytes(classes) / 1e6, 1) for classes in (2, 100)]
        [0.3, 4.4]
        """
        encoder, learner = self._model.encoder, self._one.learner
        more = classes if classes is not None and classes > learner.task.dim else None
        features = encoder.features + (encoder.champion is not None)
        return learner._state_bytes(features, classes=more, sparse=encoder.sparse)

    # -- labels that come late

    def admit(self, ticket: TableTicket) -> TableTicket:
        """Return the ticket of a copy of the model as one of its own: see ``Learner.admit``."""
        if not isinstance(ticket, TableTicket):
            raise InputError(f"expected a ticket, as ask() returns it, but got {ticket!r:.80}")
        with self._lock:
            return self._undone(False, lambda: self._admit(ticket))

    def _admit(self, ticket: TableTicket) -> TableTicket:
        made = replace(ticket, ticket=self._one.learner.admit(ticket.ticket))
        self._model.predicted += 1
        return made

    def ask(self, rows: Any, *, numbers: Sequence[int] | None = None) -> Any:
        """Predict a row whose label comes later; return a ticket, for several rows a list.

        All rows of a ranking are one query, and have one ticket. What columns remember for values
        that are missing, they remember now. Tickets of a list are those of single rows, but for the
        last digits of ``chances``; if one row is refused, there are none. With ``numbers``, one for
        every ticket, none is outstanding: for a copy of a model that will :meth:`admit` them.

        >>> import driftline as dl
        >>> ages = [20 + i % 50 for i in range(200)]
        >>> rows = [{"age": age, "will": "go" if age < 45 else "stay"} for age in ages]
        >>> model = dl.TableModel.new(rows, label="will", learner="fast")
        >>> _ = model.learn(rows)
        >>> young, old = model.ask([{"age": 22}, {"age": 66}])
        >>> young.prediction, old.prediction, model.outstanding
        ('go', 'stay', 2)
        >>> model.tell(old, "stay")
        >>> model.forget(young)
        >>> model.rounds, model.outstanding
        (201, 0)
        """
        given = self._given(rows)
        made, _ = self._asked(given, numbers, proba=False)
        return made if self.ranks and len(given) else self._answer(given, made)

    def ask_proba(
        self, rows: Sequence[Any], *, numbers: Sequence[int] | None = None
    ) -> list[tuple[TableTicket, dict[str, float]]]:
        """Return what :meth:`ask` and :meth:`predict_proba` return for a list of rows, in pairs.

        >>> import driftline as dl
        >>> rows = [{"age": 20 + i, "will": "go" if i < 25 else "stay"} for i in range(50)]
        >>> model = dl.TableModel.new(rows, label="will", learner="fast")
        >>> ((ticket, chances),) = model.ask_proba([{"age": 22}])
        >>> ticket.prediction, chances
        ('go', {'go': 0.5, 'stay': 0.5})
        """
        if not self.classes:
            raise InputError("there are no classes yet, or a ranking has no probabilities")
        tickets, chances = self._asked(self._given(list(rows)), numbers, proba=True)
        return list(zip(tickets, chances, strict=True))

    def look(self, rows: Sequence[Any]) -> list[tuple[Any, dict[str, float], list[str] | None]]:
        """Return prediction, probabilities and set of every row, None without sets.

        They are those that :meth:`ask_proba` would return now; nothing changes.
        """
        given, (learner, names) = self._given(list(rows)), self._learner_and_names()
        if not names:
            raise InputError("there are no classes yet, or a ranking has no probabilities")
        inputs = self._inputs(self._batch(given, labelled=False, learning=False))
        if not len(given):
            return []
        numbers = self._one.predicted + np.arange(len(given))
        made = learner.ask_rows(inputs, numbers=numbers, probabilities=True)
        found = np.array([ticket.probabilities for ticket in made])
        sets: Any = self._sets_of(found)
        named = self._named([ticket.prediction for ticket in made])
        own = [None] * len(made) if sets is None else sets[0]
        return list(zip(named, _named_chances(names, found), own, strict=True))

    def _check_tickets(self) -> None:
        """Refuse tickets where rows are more than their inputs."""
        if self._one.weighs:
            raise InputError(
                "rows of this model have weights, and a ticket has none: learn from rows with "
                "their labels by learn()"
            )

    def _asked(self, given: GivenRows, numbers: Sequence[int] | None, proba: bool) -> Any:
        """Return tickets, of a ranking one, and the chances of all labels by name, if wanted."""
        self._check_tickets()
        if not len(given):
            return [], []
        with self._lock:
            return self._undone(False, lambda: self._asked_now(given, numbers, proba))

    def _asked_now(self, given: GivenRows, numbers: Sequence[int] | None, proba: bool) -> Any:
        chances: list[dict[str, float]] = []
        inputs = self._inputs(self._batch(given, labelled=False, learning=numbers is None))
        ragged, learner = self._model.task.layout.ragged, self._one.learner
        if ragged and len(inputs) != 1:
            raise InputError(f"expected the rows of one query, but these are {len(inputs)}")
        wanted = proba or self._model.sets is not None
        made = learner.ask_rows(inputs, numbers=numbers, probabilities=wanted)
        named, sets = self._named([ticket.prediction for ticket in made]), None
        if wanted:
            found = np.array([ticket.probabilities for ticket in made])
            sets = self._sets_of(found)
            chances = _named_chances(self._learner_and_names()[1], found) if proba else []
            made = [replace(ticket, probabilities=None) for ticket in made]
        self._model.predicted += len(made)
        if ragged:
            return TableTicket(named, made[0]), chances
        tickets = [TableTicket(*pair) for pair in zip(named, made, strict=True)]
        if sets is not None:
            own = zip(tickets, *sets, strict=True)
            tickets = [replace(one, set=s, chances=c, inside=i) for one, s, c, i in own]
        return tickets, chances

    def _sets_of(
        self, chances: np.ndarray
    ) -> tuple[list[list[str]], np.ndarray, np.ndarray] | None:
        """Return sets of labels for rows, by name, the chances of all, and which are inside."""
        level, (_, names) = self._model.sets, self._learner_and_names()
        if level is None:
            return None
        inside = level.sets(chances)
        return _named_sets(names, chances, inside), chances, inside

    def tell(
        self, ticket: TableTicket | Sequence[TableTicket], label: Any, *, ahead: bool = False
    ) -> None:
        """Learn from a ticket and its label, by name; of a ranking, a grade for each row.

        Or from a list of tickets and a list of their labels: the same as told one by one, and much
        faster. Tickets are told in any order; a new class is added. If one is refused, nothing
        changes. With ``ahead`` new classes are added before the first ticket is told, as in
        :meth:`learn`: all weights are copied for every class else.

        >>> import driftline as dl
        >>> ages = [20 + i % 50 for i in range(200)]
        >>> rows = [{"age": age, "will": "go" if age < 45 else "stay"} for age in ages]
        >>> model = dl.TableModel.new(rows, label="will", learner="fast")
        >>> tickets = model.ask(rows)
        >>> model.tell(tickets, [row["will"] for row in rows])
        >>> model.rounds, model.predict({"age": 22})
        (200, 'go')
        """
        several = isinstance(ticket, (list, tuple))
        tickets: Any = ticket if several else [ticket]
        labels = _listed(label) if several else [label]
        if len(tickets) != len(labels):
            raise InputError(f"there are {len(tickets)} tickets, but {len(labels)} labels")
        for own in tickets:
            if not isinstance(own, TableTicket):
                raise InputError(f"expected a ticket, as ask() returns it, but got {own!r:.80}")
        if not tickets:
            return
        with self._lock:
            self._whole(len(tickets), lambda: self._tell(tickets, labels, ahead))

    def _tell(self, tickets: Sequence[TableTicket], labels: Sequence[Any], ahead: bool) -> None:
        model, told = self._one, []
        codes = self._codes(labels)
        if model.sets is not None:
            pairs = zip(tickets, codes, strict=True)
            told = [own.told(int(code)) for own, code in pairs]
        model.tell_rows([own.ticket for own in tickets], codes, ahead)
        model.count_labels(codes)
        if model.sets is not None:
            for chance, inside in told:
                model.sets.tell(chance, inside)

    def _codes(self, labels: Sequence[Any]) -> Any:
        """Return labels by name as the learner takes them; new classes are added."""
        codec, ragged = self._model.encoder.labels, self._model.task.layout.ragged
        if not ragged and (known := codec.known_codes(labels)) is not None:
            return known
        grades = [_listed(label) for label in labels] if ragged else [[label] for label in labels]
        cells = [codec.cells(own) for listed in grades for own in listed]
        columns = {name: [own[j] for own in cells] for j, name in enumerate(codec.names)}
        given = GivenRows(columns, len(cells))
        codes = codec.encode(given, {name: j for j, name in enumerate(codec.names)})
        return np.split(codes, np.cumsum([len(own) for own in grades])[:-1]) if ragged else codes

    def forget(
        self, ticket: TableTicket | None = None, *, before: TableTicket | int | None = None
    ) -> None:
        """Say that no label will come for a ticket, or for all asked for before another."""
        own: Any = ticket.ticket if isinstance(ticket, TableTicket) else ticket
        other: Any = before.ticket if isinstance(before, TableTicket) else before
        with self._lock:
            self._forget(own, other)

    def _forget(self, ticket: Any, before: Any) -> None:
        learner, level = self._one.learner, self._model.sets
        waited, kept = learner._late_numbers, None if level is None else level.waiting

        def follow() -> None:
            if level is not None and kept is not None:
                level.waiting = kept[np.isin(waited, learner._late_numbers)]

        try:
            learner.forget(ticket, before=before)
            follow()
        except BaseException:
            follow()
            raise

    @property
    def outstanding(self) -> int:
        """How many tickets were asked for, and neither told nor forgotten yet."""
        return self._one.learner.outstanding

    def explain(self, rows: Any = None) -> Explanation:
        """Say which columns matter most, and how chances depend on them: see :func:`explain`.

        Parameters
        ----------
        rows
            Whose predictions are explained, 2 or more. Default: the last ones learned from.
        """
        inputs, (learner, labels) = None, self._learner_and_names()
        if len(labels) == 1 and self._model.encoder.labels.grows:  # the second has no name yet
            labels = [*labels, "(other)"]
        if rows is not None:
            batch = self._batch(self._given(rows), labelled=False, learning=False)
            inputs = self._inputs(batch)
        names, texts = self._model.encoder.feature_names, self._model.encoder.texts
        return explain(learner, inputs, names=names, labels=labels, categories=texts)

    def save(self, path: str | Path) -> Path:
        """Write the model to one file of plain data, for :func:`driftline.load`."""
        with self._lock:
            return self._model.save(path)

    def to_saved(self) -> Saved:
        """Return the model as plain data and arrays."""
        with self._lock:
            return self._model.to_saved()

    def __reduce__(self) -> tuple[Callable[..., TableModel], tuple[Any, ...]]:
        """Pickle and copy the saved form."""
        with self._lock:
            about, arrays = self._model.to_saved()
            return type(self).from_saved, ("a copy", *copy.deepcopy((about, arrays)))

    @classmethod
    def from_saved(cls, path: str | Path, about: Json, arrays: dict[str, np.ndarray]) -> TableModel:
        """Return the model of a file that was read."""
        return cls(model_from(path, about, arrays))

    # -- from rows to inputs, and from predictions to names

    def _given(self, rows: Any) -> GivenRows:
        """Return rows by column, after columns were found that the model does not know."""
        encoder = self._model.encoder
        if isinstance(encoder.columns, int):
            return GivenRows.of_matrix(rows, encoder.columns, encoder.query)
        if isinstance(rows, list) and any(isinstance(row, ReadRow) for row in rows):
            own = encoder.columns  # rows of others, such as a challenger's, are read anew
            if all(isinstance(row, ReadRow) and row.columns is own for row in rows):
                return GivenRows.of_read([row.values for row in rows])
            rows = [row.row if isinstance(row, ReadRow) else row for row in rows]
        columns = self.columns
        known = {*columns, *encoder.labels.names, *encoder.ignored}
        known |= {name for name in (encoder.weight, encoder.delay) if name is not None}

        def check(names: Sequence[str]) -> None:
            for name in names:
                if name not in known:
                    said = f"the model does not know the column {name!r:.80}"
                    raise InputError(f"{said}{close_to(name, columns)}")

        return GivenRows.of(rows, columns, check).with_missing(columns)

    def _learner_and_names(self) -> tuple[Committee, list[str]]:
        """Return the learner and the names of what it predicts, while others may add classes."""
        learner = self._one.learner  # first: names of new classes are known before it grows
        codec = self._model.encoder.labels
        return learner, list(codec.outcomes[: learner.task.dim] if codec.grows else codec.outcomes)

    def _batch(self, given: GivenRows, labelled: bool, learning: bool) -> Batch:
        columns = self._model.encoder.columns
        if given.read is not None and not isinstance(columns, int):
            return Batch(columns.filled(given.read, learning), None, given)
        bound = self._model.encoder.bind(given, labelled=labelled, learning=learning)
        return bound.batch(given)

    def _rounds(self, batch: Batch) -> tuple[Any, Any]:
        """Return inputs and labels as the learner takes them: rows, or queries."""
        query = self._model.encoder.query
        if query is None:
            return batch.inputs, batch.labels
        queries = Queries(query)
        first, last = queries.add(batch), queries.end()
        return first.documents + last.documents, first.grades + last.grades

    def _inputs(self, batch: Batch) -> Inputs:
        return self._rounds(batch)[0]

    def _named(self, made: Any) -> list[Any]:
        """Return predictions by name, one a row."""
        codec = self._model.encoder.labels
        if codec.numeric:
            return [int(rank) for ranks in made for rank in ranks if rank >= 0]
        return codec.named(made)

    def _answer(self, given: GivenRows, made: list[Any]) -> Any:
        return made[0] if given.single else made

    def _label_cells(self, given: GivenRows, labels: Any) -> Mapping[str, Sequence[Any]]:
        """Return the columns of labels that were given beside the rows."""
        codec = self._model.encoder.labels
        labels = [labels] if given.single else _listed(labels)
        if len(labels) != len(given):
            raise InputError(f"there are {len(given)} rows, but {len(labels)} labels")
        cells = [codec.cells(label) for label in labels]
        return {name: [own[j] for own in cells] for j, name in enumerate(codec.names)}


class _Before:
    """What a model was before a call, to go back to.

    With ``copies`` also its learner is copied, and what follows the labels.
    """

    def __init__(self, model: Model, copies: bool):
        self._model, self._fields = model, dict(vars(model))
        columns = model.encoder.columns
        self._classes = len(model.encoder.labels.values)
        self._columns = None if isinstance(columns, int) else (columns.sums, columns.counts)
        self._rounds, self._tickets, self._copied = model.rounds, 0, None
        if isinstance(model, CommitteeModel):
            self._tickets = model.learner._tickets
            if copies:
                baselines, sets = model.baselines.state(), copy.deepcopy(model.sets)
                self._copied = model.learner._checkpoint(weights=True), baselines, sets

    def go_back(self) -> None:
        """Go back, as far as there are copies."""
        model, learner = self._model, self._fields["learner"]
        model.encoder.labels.forget(self._classes)
        columns = model.encoder.columns
        if not isinstance(columns, int) and self._columns is not None:
            columns.sums, columns.counts = self._columns
        if self._copied is None and learner.rounds != self._rounds:
            model.learner = learner
            return
        vars(model).update(self._fields)
        if self._copied is not None:
            before, baselines, model.sets = self._copied
            model.baselines.resume(baselines)
            if learner.rounds != self._rounds or learner._torn:
                learner._rollback(before)
        elif isinstance(model, CommitteeModel) and learner._tickets != self._tickets:
            learner._take_back(self._tickets)


def _named_chances(names: list[str], chances: np.ndarray) -> list[dict[str, float]]:
    """Return the chance of every label by name, a dict a row."""
    if len(names) < chances.shape[1]:  # the second class has no name yet
        chances = chances[:, : len(names)]
        chances = chances / chances.sum(axis=1, keepdims=True)
    return [dict(zip(names, row, strict=True)) for row in chances.tolist()]


def _named_sets(names: list[str], chances: np.ndarray, sets: np.ndarray) -> list[list[str]]:
    """Return the labels of each set by name, the likeliest first."""
    orders = np.argsort(-chances, axis=1, kind="stable").tolist()
    pairs = zip(orders, sets, strict=True)
    return [[names[k] for k in order if own[k] and k < len(names)] for order, own in pairs]


def _options(**given: Any) -> Options:
    """Return options, if each is of its kind; a text stands for a list of it."""
    names = [field.name for field in fields(Options)]
    if unknown := [name for name in given if name not in names]:
        raise InputError(f"options are {', '.join(names)}; not {unknown[0]}")
    for name in {"label", "ignore", "text", "levels"} & given.keys():
        texts = [given[name]] if isinstance(given[name], str) else given[name]
        if not isinstance(texts, Iterable) or (name == "levels" and texts is not given[name]):
            raise InputError(f"{name} must be a list of texts, not {given[name]!r:.80}")
        given[name] = [text_of(text) for text in texts]
    texts = {"query", "task", "missing", "decimal", "time", "weight", "key", "champion"}
    for name in texts & given.keys():
        if not isinstance(given[name], str | None):
            raise InputError(f"{name} must be a text, not {given[name]!r:.80}")
    if given.get("task") not in (None, *CODECS):
        raise InputError(f"a task is one of {', '.join(CODECS)}; not {given['task']!r:.80}")
    check_flag("balance", given.get("balance", False))
    if given.get("abstain") is not None:
        check_number("abstain", given["abstain"], 0.001, 0.999)
    if given.get("highest") is not None:
        check_whole("the highest grade", given["highest"], 1, 2**31 - 1)
    return Options(**given)


def _listed(labels: Any) -> list[Any]:
    if hasattr(labels, "tolist"):
        labels = labels.tolist()
    if isinstance(labels, str) or not isinstance(labels, Sequence):
        raise InputError(f"expected a list of labels, one for every row, but got {labels!r:.80}")
    return list(labels)
