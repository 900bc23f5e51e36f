"""One learner for every key: the bits of a dictionary of learners, whatever is played."""

import copy
import pickle
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import driftline as dl
from driftline.errors import DAMAGE
from driftline.kernels.philox import draw_next
from driftline.keyed import images, playing
from driftline.keyed.blocks import words_of
from driftline.keyed.index import KeyIndex
from driftline.learner.shell import Shell
from driftline.state.draws import Draws, keys_of_seeds
from tests.strategies import committee_by

pytestmark = pytest.mark.usefixtures("no_ids")

L, T = dl.losses, dl.tasks
RNG = np.random.default_rng(7)
ROWS, SEED = 240, 1
X = RNG.normal(size=(ROWS, 5))
KEYS = RNG.integers(0, 9, ROWS)


def three():
    return (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)


def tags():
    return (X[:, :3] > 0).astype(int)


def random_decoder(task):
    loss = L.Logistic(task)
    return dl.OGD(loss, dl.decoders.GapOptimal(loss), seed=5)


#: Learners of the loop, and of all other kinds, with their labels.
LOOP = {
    "classes": (lambda: dl.OGD(L.Logistic(T.Multiclass(3))), three),
    "drawn": (lambda: random_decoder(T.Multiclass(3)), three),
    "intercept": (lambda: dl.OGD(L.Logistic(T.Multiclass(3)), intercept=True), three),
    "single": (lambda: dl.OGD(L.Logistic(T.Multiclass(3)), dtype=np.float32), three),
    "first weights": (
        lambda: dl.OGD(L.Logistic(T.Multiclass(3)), initial=np.full((3, 5), 0.3)),
        three,
    ),
    "small ball": (
        lambda: dl.OGD(L.Logistic(T.Multiclass(3)), domain=dl.domains.Ball(0.5)),
        three,
    ),
    "tags": (lambda: dl.OGD(L.Logistic(T.Multilabel(3))), tags),
    "signs": (lambda: dl.OGD(L.SmoothHinge(T.Binary())), lambda: np.sign(X[:, 0]).astype(int)),
    "constant": (lambda: dl.OGD(L.Logistic(T.Multiclass(3)), rate=dl.rates.Constant(0.1)), three),
}
OTHERS = {
    "restart": (lambda: dl.OGD(L.Logistic(T.Multiclass(3)), restart=dl.detectors.Cusum()), three),
    "map": (lambda: dl.OGD(L.Logistic(T.Multiclass(3)), features=dl.features.Hats(4)), three),
    "committee": (lambda: dl.auto(T.Multiclass(3), effort="fast"), three),
    "committee that votes": (lambda: committee_by("vote", T.Multiclass(3)), three),
    "committee of two": (
        lambda: dl.Committee(
            [
                dl.OGD(
                    L.Logistic(T.Multiclass(3)),
                    dl.decoders.Argmax(L.Logistic(T.Multiclass(3))),
                    rate=dl.rates.Constant(eta),
                    restart=dl.detectors.Cusum(threshold=1.0, patience=5),
                )
                for eta in (0.1, 1.0)
            ]
        ),
        three,
    ),
    "committee of floats": (
        lambda: dl.auto(T.Multiclass(3), effort="fast", dtype=np.float32),
        three,
    ),
    "guarded committee": (
        lambda: dl.auto(T.Multiclass(3), effort="fast", combine="vote", budget=1.5),
        three,
    ),
    "committee of tags": (lambda: dl.auto(T.Multilabel(3), effort="fast"), tags),
}
FAMILY = LOOP | OTHERS
every_learner = pytest.mark.parametrize("name", FAMILY)


def saved(learner):
    about, arrays = learner if isinstance(learner, tuple) else learner.to_saved()
    return about, {name: array.tobytes() for name, array in arrays.items()}


class Dictionary:
    """Learners in a dictionary, played row by row."""

    def __init__(self, fleet, make):
        self.fleet, self.make, self.learners = fleet, make, {}

    def of(self, key):
        if key not in self.learners:
            self.learners[key] = self.make()
            self.learners[key]._reseed(self.fleet.seed_of(key))
        return self.learners[key]

    def step(self, key, x, label):
        return self.of(key).step(x, label)

    def check(self):
        assert set(self.fleet) == set(self.learners)
        for key, learner in self.learners.items():
            assert saved(self.fleet.learner(key)) == saved(learner)


@every_learner
def test_runs_have_the_bits_of_a_dictionary(name):
    make, labels = FAMILY[name]
    fleet, y = dl.Keyed(make()), labels()
    naive = Dictionary(fleet, make)
    for start, stop in ((0, 1), (1, 90), (90, ROWS)):
        trace = fleet.run(KEYS[start:stop], X[start:stop], y[start:stop])
        rounds = [naive.step(int(KEYS[t]), X[t], y[t]) for t in range(start, stop)]
        assert trace.target_loss.tolist() == [own.target_loss for own in rounds]
        assert trace.risk.tolist() == [own.risk for own in rounds]
        assert np.array_equal(trace.prediction, [own.prediction for own in rounds])
        some = np.r_[0:20, 200:220]
        again = fleet.predict_rows(KEYS[some] * (some < 210), X[some])
        single = [fleet.predict(int(KEYS[t] * (t < 210)), X[t]) for t in some]
        assert all(np.array_equal(a, b) for a, b in zip(again, single, strict=True))
        if name in LOOP:
            assert trace.loss.tolist() == [own.loss for own in rounds]
            assert trace.eta.tolist() == [own.eta for own in rounds]
    naive.check()


def interrupted(rows):
    raise KeyboardInterrupt


@every_learner
def test_any_history_has_the_bits_of_a_dictionary(name):
    make, labels = FAMILY[name]
    fleet, y, rng, open_tickets = dl.Keyed(make()), labels(), np.random.default_rng(SEED), []
    naive = Dictionary(fleet, make)
    kinds = ["step", "run", "ask", "tell", "forget", "predict", "evict", "reload", "interrupt"]
    for _ in range(60):
        what, t = rng.choice(kinds), rng.integers(ROWS)
        key = int(KEYS[t])
        if what == "step":
            mine, theirs = fleet.step(key, X[t], y[t]), naive.step(key, X[t], y[t])
            assert mine.target_loss == theirs.target_loss
        elif what == "run":
            places = rng.integers(0, ROWS, 12)
            fleet.learn_rows(KEYS[places], X[places], y[places])
            for p in places:
                naive.step(int(KEYS[p]), X[p], y[p])
        elif what == "ask":
            mine, theirs = fleet.ask(key, X[t]), naive.of(key).ask(X[t])
            assert mine.ticket.to_bytes() == theirs.to_bytes()
            open_tickets.append((t, mine, theirs))
        elif what == "predict":
            assert np.array_equal(fleet.predict(key, X[t]), naive.of(key).predict(X[t]))
            if key not in fleet:
                del naive.learners[key]
        elif what == "evict":
            for name_of, state in fleet.evict(most=len(fleet) // 2).items():
                if state.features if name in LOOP else state.rounds:
                    fleet.put(name_of, state)
                else:  # it was only asked so far, and cannot be put back
                    del naive.learners[name_of]
                    open_tickets = [own for own in open_tickets if own[1].key != name_of]
        elif what == "reload":
            fleet = naive.fleet = dl.Keyed.from_saved(*fleet.to_saved())
        elif what == "interrupt":
            places = rng.integers(0, ROWS, 30)
            with pytest.raises(KeyboardInterrupt):
                fleet.run(KEYS[places], X[places], y[places], progress=interrupted)
        elif open_tickets:
            t, mine, theirs = open_tickets.pop(int(rng.integers(len(open_tickets))))
            if what == "tell":
                fleet.tell(mine, y[t])
                naive.of(int(KEYS[t])).tell(theirs, y[t])
            else:
                fleet.forget(mine)
                naive.of(int(KEYS[t])).forget(theirs)
    naive.check()


@pytest.mark.parametrize("name", ["classes", "drawn", "tags", "committee"])
@pytest.mark.parametrize(
    "rows", [sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0)), X.astype(np.float32)]
)
def test_other_rows(name, rows, monkeypatch):
    monkeypatch.setattr(playing, "PIECE", 7)
    make, labels = FAMILY[name]
    fleet, y = dl.Keyed(make()), labels()
    naive = Dictionary(fleet, make)
    fleet.run(KEYS, rows, y)
    for t in range(ROWS):
        naive.step(int(KEYS[t]), rows[t : t + 1] if sp.issparse(rows) else rows[t], y[t])
    if not sp.issparse(rows) or name == "committee":
        naive.check()
    for key, learner in naive.learners.items():  # which lie transposed in memory
        made, x = fleet.learner(key), rows[:1] if sp.issparse(rows) else X[0]
        assert np.array_equal(made.predict(x), learner.predict(x))
        assert name == "committee" or np.array_equal(made.weights, learner.weights)


def test_rankings():
    queries = [RNG.normal(size=(RNG.integers(2, 6), 3)) for _ in range(60)]
    grades = [RNG.integers(0, 3, len(own)) for own in queries]
    task = T.NDCG(2)

    def make():
        return dl.auto(task, effort="fast")

    fleet = dl.Keyed(make())
    naive = Dictionary(fleet, make)
    keys = RNG.integers(0, 4, 60)
    trace = fleet.run(keys, queries, grades)
    made = [naive.step(int(k), x, y) for k, x, y in zip(keys, queries, grades, strict=True)]
    assert trace.target_loss.tolist() == [own.target_loss for own in made]
    naive.check()


@pytest.mark.parametrize("name", ["classes", "committee"])
def test_sample_weights(name):
    make, labels = FAMILY[name]
    fleet, y, weights = dl.Keyed(make()), labels(), RNG.uniform(0.1, 3.0, ROWS)
    trace = fleet.run(KEYS, X, y, sample_weight=weights, audit=True)
    for key in range(9):
        rows = trace.rows(key)
        alone = make().run(X[rows], y[rows], sample_weight=weights[rows], seed=fleet.seed_of(key))
        assert np.array_equal(trace.risk[rows], alone.risk)
        assert np.array_equal(trace.of(key).sample_weight, weights[rows])


KINDS = {
    "numbers": lambda k: k,
    "texts": [f"shop {k}" for k in range(9)],
    "large": [10**30 + k for k in range(9)],
    "bytes": [bytes([k]) for k in range(9)],
    "pairs": [("shop", k) for k in range(9)],
    "mixed": [0, "0", b"0", ("0",), -5, 2**63, "", 7, (7, "7")],
}


@pytest.mark.parametrize("kind", list(KINDS)[1:])
def test_keys_of_any_kind(kind):
    y, names = three(), KINDS[kind]
    keys = [names[k] for k in KEYS]
    fleet, numbered = (dl.Keyed(dl.OGD(L.Logistic(T.Multiclass(3)))) for _ in range(2))
    trace, other = fleet.run(keys, X, y), numbered.run(KEYS, X, y)
    assert np.array_equal(trace.loss, other.loss)
    assert set(fleet) == {names[k] for k in KEYS}
    assert names[KEYS[0]] in fleet and "nobody" not in fleet
    totals = trace.totals()
    assert totals.rounds.sum() == ROWS and np.isclose(totals.risk.sum(), trace.risk.sum())


@pytest.mark.parametrize("key", [1.5, float("nan"), None, True, [1], {"a": 1}, object()])
def test_other_keys_are_refused(key):
    fleet = dl.Keyed(dl.OGD(L.Logistic(T.Multiclass(3))))
    with pytest.raises(dl.InputError, match="a key is a text"):
        fleet.step(key, X[0], 0)
    with pytest.raises(dl.InputError, match="a key is a text"):
        fleet.run([key, "a"], X[:2], [0, 1])
    assert len(fleet) == 0


@every_learner
def test_a_refused_row_changes_nothing(name):
    make, labels = FAMILY[name]
    fleet, y = dl.Keyed(make()), labels()
    fleet.run(KEYS[:50], X[:50], y[:50])
    before = saved(fleet)
    bad = X[50:90].copy()
    bad[20, 2] = np.nan
    with pytest.raises(dl.InputError):
        fleet.run([f"new {k}" for k in KEYS[50:90]], bad, y[50:90])
    with pytest.raises(dl.InputError):
        fleet.run(KEYS[50:90], bad, y[50:90])
    assert saved(fleet) == before
    bad[20, 2] = 1e300
    if name in LOOP:  # a map or a scaling may take it
        with pytest.raises(dl.InputError):
            fleet.run(KEYS[50:90], bad, y[50:90])
        assert saved(fleet) == before
    for wrong in (
        lambda: fleet.run(KEYS[:3], X[:4], y[:4]),
        lambda: fleet.run(KEYS[:4], X[:4], y[:3]),
        lambda: fleet.run("abcd", X[:4], y[:4]),
        lambda: fleet.run(KEYS[:4], X[:4, :2], y[:4]),
        lambda: fleet.run(KEYS[:4].reshape(2, 2), X[:4], y[:4]),
    ):
        with pytest.raises(dl.InputError):
            wrong()


@every_learner
def test_files(name, tmp_path):
    make, labels = FAMILY[name]
    fleet, y = dl.Keyed(make()), labels()
    names = [("shop", int(k)) if k % 2 else int(k) for k in KEYS]
    fleet.run(names[:150], X[:150], y[:150])
    ticket = fleet.ask(4, X[0])
    again = dl.load(fleet.save(tmp_path / "fleet"))
    assert saved(again) == saved(fleet)
    for own in (fleet, again):
        own.tell(ticket, y[0])
    one, other = (own.run(names[150:], X[150:], y[150:]) for own in (fleet, again))
    assert np.array_equal(one.risk, other.risk) and saved(again) == saved(fleet)
    single = dl.load(fleet.learner(4).save(tmp_path / "one"))
    assert saved(single) == saved(fleet.learner(4))


@pytest.mark.parametrize(
    "change",
    [
        lambda about, arrays: arrays.update({"keys.weights": arrays["keys.weights"] * np.nan}),
        lambda about, arrays: arrays.update({"keys.weights": arrays["keys.weights"] * 1e9}),
        lambda about, arrays: arrays.update({"keys.weights": arrays["keys.weights"][:-1]}),
        lambda about, arrays: arrays.update({"keys.vectors": -arrays["keys.vectors"]}),
        lambda about, arrays: arrays.update({"seen": arrays["seen"] + 10**6}),
        lambda about, arrays: about.update({"keys": about["keys"][:-1] + about["keys"][:1]}),
        lambda about, arrays: about.update({"keys": about["keys"][:-1]}),
        lambda about, arrays: about["of keys"].update({"features": 99}),
        lambda about, arrays: about.update({"rows": -1}),
        lambda about, arrays: about.update({"version": 2}),
    ],
)
def test_edited_files_are_refused(change, tmp_path):
    from driftline.state import archive

    fleet = dl.Keyed(dl.OGD(L.Logistic(T.Multiclass(3))))
    fleet.run(KEYS, X, three())
    about, arrays = fleet.to_saved()
    change(about, arrays)
    archive.write(tmp_path / "edited", about, arrays)
    with pytest.raises(dl.InputError):
        dl.load(tmp_path / "edited")


def test_keys_that_go_and_come_back():
    y, make = three(), FAMILY["classes"][0]
    fleet, whole = dl.Keyed(make()), dl.Keyed(make())
    kept = {}
    for start in range(0, ROWS, 20):
        part = slice(start, start + 20)
        for key in {int(k) for k in KEYS[part]} & kept.keys():
            fleet.put(key, kept.pop(key))
        one, other = (
            fleet.run(KEYS[part], X[part], y[part]),
            whole.run(KEYS[part], X[part], y[part]),
        )
        assert np.array_equal(one.loss, other.loss)
        kept |= fleet.evict(most=4)
        assert len(fleet) <= 4
    old = dl.Keyed(make())
    old.learn_rows(["a", "b", "b", "c"], X[:4], y[:4])
    assert list(old.evict(age=2)) == ["a"] and list(old) == ["b", "c"]
    assert old.evict(age=2) == {} and list(old.evict(most=0)) == ["b", "c"] and len(old) == 0
    for wrong in ({}, {"most": -1}, {"age": 1.5}, {"most": True}):
        with pytest.raises(dl.InputError):
            fleet.evict(**wrong)


@pytest.mark.parametrize("part", range(0, 100, 5))
@pytest.mark.parametrize("wrong", [0x7FF8 << 48, 123456789123456789])
def test_edited_committees_are_refused_before_they_are_used(part, wrong, tmp_path):
    from driftline.state import archive

    make, labels = FAMILY["committee"]
    y, fleet = labels(), dl.Keyed(make())
    fleet.run(KEYS, X, y)
    about, arrays = fleet.to_saved()
    row = arrays["keys.pages"][-about["of keys"]["slots"][-1][1] :].reshape(-1)
    places = np.flatnonzero(row)
    assert len(places) > 300
    row[places[len(places) * part // 100]] ^= wrong
    key, other = list(fleet)[-1], list(fleet)[1]
    edited = dl.load(archive.write(tmp_path / "edited", about, arrays))
    assert edited.predict(other, X[0]) == fleet.predict(other, X[0])
    try:
        edited.predict(key, X[0])
    except dl.InputError:
        before = saved(edited)
        for use in (
            lambda: edited.predict(key, X[0]),
            lambda: edited.run([other, key], X[:2], y[:2]),
            lambda: edited.grown(classes=4).step(key, X[0], 1),
            lambda: edited.evict(most=0),
        ):
            with pytest.raises(dl.InputError, match="cannot be"):
                use()
            assert saved(edited) == before
    else:  # what follows from the parts, such as the radius of a ball, is not taken from a file
        make().restore(edited.learner(key).state)


@pytest.mark.parametrize("name", ["committee", "map", "guarded committee"])
def test_edited_descriptions_of_states_are_refused(name):
    fleet = dl.Keyed(FAMILY[name][0]())
    fleet.run(KEYS, X, three())
    about, arrays = fleet.to_saved()
    given = about["of keys"]
    (layout,) = given["layouts"]
    key = next(iter(fleet))

    def use(**changed):
        made = dl.Keyed.from_saved(about | {"of keys": given | changed}, arrays)
        made.step(key, X[0], 1)

    use()
    shape = next(i for i, own in enumerate(layout["shapes"]) if own is not None)
    for own in ([[3], "<f8"], [[2**40], "<f8"], [[-1], "<f8"], [[4], "|O"], None):
        shapes = [own if i == shape else one for i, one in enumerate(layout["shapes"])]
        with pytest.raises((dl.InputError, *DAMAGE)):
            use(layouts=[layout | {"shapes": shapes}])
    with pytest.raises((dl.InputError, *DAMAGE)):
        use(layouts=[layout | {"plain": layout["plain"][:-1]}])
    with pytest.raises((dl.InputError, *DAMAGE)):
        use(slots=given["slots"][:-1])


@pytest.mark.parametrize("name", ["classes", "drawn", "intercept"])
def test_keys_that_start_from_what_all_have_learned(name):
    make, labels = FAMILY[name]
    fleet, y = dl.Keyed(make(), start="shared"), labels()
    trace = fleet.run(KEYS[:120], X[:120], y[:120])
    later = fleet.run(KEYS[120:] + 100, X[120:], y[120:])
    shared, learners, losses = make(), {}, []
    for t in range(ROWS):
        key = int(KEYS[t]) + 100 * (t >= 120)
        if key not in learners:
            learners[key] = make()
            learners[key]._reseed(fleet.seed_of(key))
            if t:
                start, known = learners[key].state, shared.state
                same = {n: getattr(known, n) for n in ("features", "weights", "scale", "norm_sq")}
                learners[key].restore(start.replaced(**same, refresh=4096))
        losses.append(learners[key].step(X[t], y[t]).loss)
        shared.step(X[t], y[t])
    assert [*trace.loss, *later.loss] == losses
    assert np.array_equal(fleet.shared.weights, shared.weights)
    comparator = dl.comparators.Fixed(np.zeros(shared.weights.shape))
    made = later.certify(comparator, X[120:], y[120:])
    assert made.valid and made.expected <= made.exact
    check_going_on(fleet, y)


@pytest.mark.parametrize("name", ["committee", "committee that votes", "committee of tags"])
@pytest.mark.parametrize("weighted", [False, True])
def test_committees_that_start_from_what_all_have_learned(name, weighted):
    make, labels = FAMILY[name]
    fleet, y = dl.Keyed(make(), start="shared"), labels()
    weights = np.random.default_rng(5).uniform(0.2, 1.0, ROWS) if weighted else np.ones(ROWS)
    parts, keys = (slice(0, 90), slice(90, ROWS)), KEYS + 100 * (np.arange(ROWS) >= 90)
    given = [{"sample_weight": weights[part]} if weighted else {} for part in parts]
    traces = [
        fleet.run(keys[part], X[part], y[part], audit=True, **own)
        for part, own in zip(parts, given, strict=True)
    ]
    shared, learners, losses = make(), {}, []
    for t in range(ROWS):
        key = int(keys[t])
        if key not in learners:
            learners[key] = committee_begun(make(), fleet.seed_of(key), shared if t else None)
        own = {"sample_weight": weights[t : t + 1]} if weighted else {}
        losses += learners[key].run(X[t : t + 1], y[t : t + 1], **own).risk.tolist()
        shared.run(X[t : t + 1], y[t : t + 1], **own)
    assert [*traces[0].risk, *traces[1].risk] == losses
    assert saved(fleet.shared)[1] == saved(shared)[1]
    for key, own in learners.items():
        assert saved(fleet.learner(key))[1] == saved(own)[1]
    for trace, part, own in zip(traces, parts, given, strict=True):
        for key in trace.keys[:3]:
            rows = np.arange(ROWS)[part][trace.rows(key)]
            counts = {"sample_weight": weights[rows]} if own else {}
            made = dl.certify(trace.of(key), None, X[rows], y[rows], **counts)
            assert made.valid
    check_going_on(fleet, y)


def check_going_on(fleet, y):
    """Files, tickets and refused rows of learners that begin as a shared one is."""
    again = dl.Keyed.from_saved(*fleet.to_saved())
    one, other = (own.run(KEYS + 200, X, y) for own in (fleet, again))
    assert np.array_equal(one.risk, other.risk)
    for own in (fleet, again):
        ticket = own.ask("late", X[0])
        own.step("other", X[1], y[1])
        own.tell(ticket, y[0])
    assert saved(fleet) == saved(again) and saved(fleet.shared) == saved(again.shared)
    before, bad = saved(fleet), X.copy()
    bad[100] = np.nan
    with pytest.raises(dl.InputError):
        fleet.run(KEYS + 500, bad, y)
    assert saved(fleet) == before


def committee_begun(new, seed, shared):
    """Return a new committee with the weights and the map of another one, and its votes."""
    new._reseed(seed)
    if shared is None:
        return new
    known, state = shared.state, new.state
    same = ("features", "transposed", "weights", "scale", "norm_sq", "map")
    members = tuple(
        own.replaced(**{n: getattr(other, n) for n in same}, refresh=4096)
        for own, other in zip(state.members, known.members, strict=True)
    )
    shares = state.shares.copy()
    votes = len(shares.grid) * shares.members
    shares.state[-votes:] = known.shares.state[-votes:]
    learned = {"beliefs": known.beliefs, "shares": shares}
    new.restore(state.replaced(members=members, **learned))
    return new


def test_keys_that_start_from_a_state():
    make, y = FAMILY["classes"][0], three()
    taught = make()
    taught.run(X[:100], y[:100])
    fleet = dl.Keyed(make(), start=taught.state)
    trace = fleet.run(KEYS[100:], X[100:], y[100:])
    for key in range(9):
        alone, rows = taught.copy(), trace.rows(key)
        assert np.array_equal(alone.run(X[100:][rows], y[100:][rows]).loss, trace.loss[rows])
    again = dl.Keyed.from_saved(*fleet.to_saved())
    assert again.step("new", X[0], y[0]).loss == taught.step(X[0], y[0]).loss


@pytest.mark.parametrize("name", ["classes", "drawn", "committee that votes"])
def test_certificates(name):
    make, labels = FAMILY[name]
    fleet, y = dl.Keyed(make()), labels()
    first = fleet.run(KEYS[:100], X[:100], y[:100], audit=True)
    trace = fleet.run(KEYS[100:], X[100:], y[100:], audit=True)
    weights = np.zeros((3, 5))
    for key in range(3):
        assert trace.certify(None, X[100:], y[100:], keys=[key])[key].valid
    if "committee" not in name:
        comparator = dl.comparators.Fixed(weights)
        made = trace.certify(comparator, X[100:], y[100:])
        assert (
            made.valid and len(made) == 9 and made.expected <= made.exact <= made.worst_case + 1e-9
        )
        assert np.isclose(made.expected, trace.risk.sum())
        assert trace.certify({3: comparator}, X[100:], y[100:], keys=[3])[3].valid
    else:
        made = first.certify(None, X[:100], y[:100])
        assert made.expected == first.target_loss.sum() and made.valid
        assert isinstance(made.bounds()["book"], str) and "9 keys, expected" in repr(made)


def test_traces_of_committees_are_kept_if_wanted():
    make, labels = FAMILY["committee"]
    trace = dl.Keyed(make()).run(KEYS, X, labels())
    with pytest.raises(dl.InputError, match="audit=True"):
        trace.of(3)
    with pytest.raises(dl.InputError, match="no round"):
        trace.of("nobody")
    with pytest.raises(AttributeError, match="no column 'loss'"):
        _ = trace.loss


@pytest.mark.parametrize("name", ["classes", "drawn", "map", "committee", "guarded committee"])
def test_learners_grow(name):
    make, labels = FAMILY[name]
    y, fleet, learners = labels(), dl.Keyed(make()), {}
    fleet.run(KEYS[:100], X[:100], y[:100])
    for key in fleet:
        learners[key] = fleet.learner(key).grown(classes=5)
    late = fleet.ask("late", X[0])
    more = fleet.grown(classes=5)
    more.tell(late, 4)
    assert more.task.dim == 5 and fleet.task.dim == 3 and "late" not in learners
    assert list(more) == list(fleet)
    rows, labels = X[100:], np.where(np.arange(len(X) - 100) % 7 == 0, 4, y[100:])
    trace = more.run(KEYS[100:], rows, labels)
    for key in trace.keys[:4]:
        if key not in learners:  # a new one
            learners[key] = make().grown(classes=5)
            learners[key]._reseed(more.seed_of(key))
        mine = trace.rows(key)
        assert np.array_equal(learners[key].run(rows[mine], labels[mine]).risk, trace.risk[mine])
    older = fleet.grown(classes=4)
    assert list(fleet.evict(most=3)) == list(older.evict(most=3))
    longer = fleet.grown(features=7)
    assert len(longer) == 3
    longer.learn_rows(list(longer), np.ones((3, 7)), [0, 1, 2])


@pytest.mark.parametrize("name", ["classes", "committee"])
def test_what_all_share_grows_too(name):
    make, labels = FAMILY[name]
    y, fleet = labels(), dl.Keyed(make(), start="shared")
    fleet.run(KEYS[:100], X[:100], y[:100])
    shared = fleet.shared.grown(classes=4)
    more = fleet.grown(classes=4)
    assert saved(more.shared)[1] == saved(shared)[1]
    more.run(KEYS[100:] + 1000, X[100:], y[100:])
    shared.run(X[100:], y[100:])
    assert saved(more.shared)[1] == saved(shared)[1]


def test_wrong_arguments():
    learner = FAMILY["classes"][0]()
    learner.step(X[0], 0)
    for wrong in (
        lambda: dl.Keyed(learner),
        lambda: dl.Keyed("auto"),
        lambda: dl.Keyed(FAMILY["classes"][0](), start="warm"),
        lambda: dl.Keyed(
            FAMILY["classes"][0](), start=FAMILY["intercept"][0]().state.replaced(rounds=-1)
        ),
        lambda: dl.Keyed(dl.auto(T.Multiclass(3)), start="shared"),
    ):
        with pytest.raises(dl.InputError):
            wrong()
    fleet = dl.Keyed(FAMILY["classes"][0]())
    with pytest.raises(dl.InputError, match="no learner for the key"):
        fleet.state("a")
    with pytest.raises(dl.InputError, match="expected a ticket"):
        fleet.tell("a", 1)


@pytest.mark.parametrize("start", ["zero", "shared"])
@pytest.mark.parametrize("name", ["classes", "committee"])
def test_first_rows_that_are_refused_leave_nothing(name, start):
    fleet, bad = dl.Keyed(FAMILY[name][0](), start=start), np.full((1, 7), np.nan)
    for wrong in (
        lambda: fleet.run(["a"], bad, [0]),
        lambda: fleet.step("a", bad[0], 0),
        lambda: fleet.ask("a", bad[0]),
        lambda: fleet.run(["a"], sp.csr_array(bad), [0]),
    ):
        with pytest.raises(dl.InputError):
            wrong()
        assert not len(fleet)
    other, y = dl.Keyed(FAMILY[name][0](), start=start), FAMILY[name][1]()
    made, wanted = fleet.run(KEYS, X, y), other.run(KEYS, X, y)  # of another width
    assert np.array_equal(made.target_loss, wanted.target_loss)
    assert saved(fleet) == saved(other)


@pytest.mark.parametrize("start", ["zero", "shared"])
@pytest.mark.parametrize("name", ["classes", "committee"])
def test_copies_and_pickles_go_on_by_themselves(name, start):
    fleet, y = dl.Keyed(FAMILY[name][0](), start=start), FAMILY[name][1]()
    fleet.learn_rows(KEYS[:100], X[:100], y[:100])
    copies = [copy.deepcopy(fleet), pickle.loads(pickle.dumps(fleet))]
    fleet.learn_rows(KEYS[100:], X[100:], y[100:])
    for own in copies:
        own.learn_rows(KEYS[100:], X[100:], y[100:])
        assert saved(own) == saved(fleet)


def test_a_key_that_is_refused_is_never_seen_by_other_threads():
    fleet, seen, told = dl.Keyed(FAMILY["committee"][0]()), [], threading.Event()
    fleet.learn_rows(["a"], X[:1], [0])

    def look():
        seen.append((len(fleet), "b" in fleet, list(fleet)))
        told.set()

    watching = threading.Thread(target=look)

    def refuse(_):
        watching.start()
        told.wait(0.5)  # who need not wait for the run has looked by then
        raise dl.InputError("no more of it")

    with pytest.raises(dl.InputError):
        fleet.run(["b"], X[:1], [0], progress=refuse)
    watching.join()
    assert seen == [(1, False, ["a"])]


@pytest.mark.parametrize("name", ["committee", "guarded committee", "map"])
def test_rows_of_a_key_are_predicted_together(name, monkeypatch):
    fleet = dl.Keyed(FAMILY[name][0]())
    fleet.learn_rows(KEYS, X, three())
    keys = np.where(np.arange(ROWS) % 5 == 0, 77, KEYS)  # nobody has seen 77
    wanted = [fleet.predict(int(key), x) for key, x in zip(keys, X, strict=True)]
    predict, counts = Shell._predict, []

    def counted(learner, rows):
        counts.append(rows.rounds)
        return predict(learner, rows)

    monkeypatch.setattr(Shell, "_predict", counted)
    assert fleet.predict_rows(keys, X) == wanted
    assert sorted(counts) == sorted(np.unique(keys, return_counts=True)[1].tolist())


def test_alarms_of_keys_are_in_files():
    fleet = dl.Keyed(dl.auto(T.Multiclass(2), effort="fast"))
    inputs, rows = np.random.default_rng(0).normal(size=(2400, 2)), np.arange(2400)
    fleet.learn_rows(rows % 3, inputs, (inputs[:, 0] > 0) ^ (rows > 1200))
    again = dl.Keyed.from_saved(*fleet.to_saved())
    assert again.alarms == fleet.alarms and all(fleet.alarms.values())


def test_more_keys_than_are_live_have_the_bits_of_a_dictionary(monkeypatch):
    monkeypatch.setattr(images, "MOST", 8)
    monkeypatch.setattr(images, "ROWS", 5)
    fleet, make = dl.Keyed(dl.auto(T.Multiclass(2))), lambda: dl.auto(T.Multiclass(2))
    inputs, alone = np.random.default_rng(0).normal(size=(200, 2)), {}
    keys, y = np.r_[np.arange(120) * 7 % 13, np.arange(80) % 3], (inputs[:, 0] > 0).astype(int)
    for key, x, label in zip(keys.tolist(), inputs, y, strict=True):
        if key not in alone:
            alone[key] = make()
            alone[key]._reseed(fleet.seed_of(key))
        assert fleet.step(key, x, label).risk == alone[key].step(x, label).risk
    again = dl.Keyed.from_saved(*fleet.to_saved())
    for key, learner in alone.items():
        assert saved(fleet.learner(key)) == saved(learner) == saved(again.learner(key))


@pytest.mark.parametrize("name", ["classes", "committee"])
def test_a_file_has_the_shared_learner_or_is_refused(name):
    fleet = dl.Keyed(FAMILY[name][0](), start="shared")
    fleet.learn_rows(KEYS, X, FAMILY[name][1]())
    about, arrays = fleet.to_saved()
    without = {what: own for what, own in about.items() if what != "of shared"}
    for wrong in (without, about | {"shares": False}):
        with pytest.raises(dl.InputError, match="a learner over all keys"):
            dl.Keyed.from_saved(wrong, arrays)


def test_the_index_is_a_dictionary():
    rng, index, known = np.random.default_rng(3), KeyIndex(), {}
    for _ in range(60):
        count = int(rng.integers(1, 400))
        numbers = (
            rng.integers(-(2**62), 2**62, count)
            if rng.random() < 0.5
            else rng.integers(0, 500, count)
        )
        keys = numbers if rng.random() < 0.6 else [f"k{n}" if n % 2 else int(n) for n in numbers]
        slots = index.slots(keys, add=True)
        for key, slot in zip(list(keys), slots.tolist(), strict=True):
            key = key if isinstance(key, str) else int(key)
            assert known.setdefault(key, slot) == slot
        if rng.random() < 0.3:
            gone = rng.permutation(list(known.values()))[: len(known) // 3].tolist()
            index.remove(gone)
            known = {key: slot for key, slot in known.items() if slot not in gone}
        assert len(index) == len(known) == len(set(known.values()))
        assert {key: index.slot(key) for key in known} == known
        assert {index.key(slot): slot for slot in index.used.tolist()} == known
        assert index.slot("nobody") == -1 and index.slots([2**62 + 5], add=False)[0] == -1


def test_random_numbers_are_those_of_numpy():
    keys = [int.from_bytes(RNG.bytes(16), "big") for _ in range(20)]
    slots, numbers = RNG.integers(0, 20, 500), RNG.integers(0, 2**40, 20)
    made, words = np.empty((500, 1)), np.array([words_of(key) for key in keys]).view(np.uint64)
    following, expected = numbers.copy(), []
    draw_next(words, slots, following, made)
    for slot in slots:
        expected.append(Draws(keys[slot]).uniform(int(numbers[slot]))[0, 0])
        numbers[slot] += 1
    assert made[:, 0].tolist() == expected and np.array_equal(numbers, following)


def test_keys_of_many_seeds():
    seeds = np.r_[RNG.integers(0, 2**63, 200), 0, 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1]
    for branch in (0, 2, 7):
        made = keys_of_seeds(seeds, branch).tolist()
        expected = [Draws.from_seed(int(seed), branch).key for seed in seeds]
        assert [high << 64 | low for low, high in made] == expected


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_norms_that_are_computed_anew_have_the_bits_of_a_learner(dtype):
    random = np.random.default_rng(0)
    X, y = random.standard_normal((9000, 20)) / 8, random.integers(0, 5, 9000)

    def made():
        loss = dl.losses.Scaled(dl.losses.Logistic(dl.tasks.Multiclass(5)), 2.0)
        return dl.OGD(loss, dl.decoders.Argmax(loss), domain=dl.domains.Ball(0.5), dtype=dtype)

    trace = dl.Keyed(made()).run(np.zeros(9000, dtype=int), X, y)
    assert np.array_equal(trace.loss, made().run(X, y).loss)  # beyond round 4096


@pytest.mark.parametrize("width", [5, 40])
def test_a_key_that_asks_before_its_first_row_can_be_put_aside(width, monkeypatch):
    for name in ("FEWEST", "MOST"):
        monkeypatch.setattr(images, name, 1)
    rows = np.random.default_rng(SEED).normal(size=(12, width))
    y, make = (rows[:, 0] > 0).astype(int), lambda: dl.auto(T.Multiclass(2))
    fleet = dl.Keyed(make())
    naive = Dictionary(fleet, make)
    assert fleet.ask(0, rows[0]).ticket.to_bytes() == naive.of(0).ask(rows[0]).to_bytes()
    for t, key in enumerate([0, 0, 1, 0, 0, 1]):
        assert fleet.step(key, rows[t], y[t]).risk == naive.step(key, rows[t], y[t]).risk
    naive.check()
    for name, state in fleet.evict(most=0).items():
        fleet.put(name, state)
    naive.check()
    naive.fleet = dl.Keyed.from_saved(*fleet.to_saved())
    naive.check()


def test_keys_over_sparse_rows_start_from_what_all_have_learned():
    rows = sp.random_array((80, 30), density=0.2, format="csr", rng=np.random.default_rng(4))
    y = (np.asarray(rows.sum(axis=1)).ravel() > 3.0).astype(int)
    fleet = dl.Keyed(dl.auto(T.Multiclass(2), effort="fast"), start="shared")
    fleet.run(np.arange(80) % 5, rows, y)
    for one in (fleet, dl.Keyed.from_saved(*fleet.to_saved())):
        new, shared = one.learner("never seen"), one.shared
        assert new.rounds == 0 and shared.rounds == 80
        for own, theirs in zip(new.members, shared.members, strict=True):
            assert np.array_equal(own.weights, theirs.weights) and theirs.weights.any()
        assert new.predict(rows[[0]]) == shared.predict(rows[[0]])
