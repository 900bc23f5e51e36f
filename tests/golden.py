"""Digests of a run of every kind of learner: ``python tests/golden.py`` prints what has changed.

With ``--write`` the command makes ``golden.json`` anew: right only where bits are meant to change.
Every column of a trace has a digest after each eighth of its rounds, so that the first eighth with
a difference is known. Bits depend on the processor, on NumPy and on Numba: on another machine only
total losses are compared, and with room.
"""

import hashlib
import json
import platform
import sys
from pathlib import Path

import numpy as np
from scipy import sparse

import driftline as dl

PATH = Path(__file__).with_name("golden.json")
ROUNDS, PIECES = 320, 8
#: How far a total may be away on another machine, as a share of the number of rounds.
ROOM = 0.05
COLUMNS = (
    *("loss", "risk", "target_loss", "eta", "grad_sq", "prediction", "gap", "restarted"),
    *("arrival", "known", "arrival_risk", "chance", "slack", "weights", "member_risk"),
)

T, L, D, R, F = dl.tasks, dl.losses, dl.decoders, dl.rates, dl.features
THREE = T.Multiclass(3)


def machine():
    """Return what bits depend on."""
    try:
        import llvmlite.binding as llvm
        import numba

        code = [numba.__version__, llvm.get_host_cpu_name()]
    except ImportError:
        code = ["plain"]
    return " ".join([platform.machine(), np.__version__, *code])


def generator():
    return np.random.default_rng(20)


def dense(rounds=ROUNDS, features=6):
    """Rows of several scales, and the scores of planted weights that turn half-way."""
    random = generator()
    inputs = random.standard_normal((rounds, features))
    planted = random.standard_normal((2, 12, features))
    scores = np.concatenate(
        [inputs[: rounds // 2] @ planted[0].T, inputs[rounds // 2 :] @ planted[1].T]
    )
    return inputs * np.r_[1.0, 3.0, 0.1, 10.0, 1.0, 1.0], scores


def labels(task, scores):
    """Return labels of a task by planted scores."""
    kind = type(task).__name__
    if kind in ("Multiclass", "CostSensitive", "Abstaining"):
        return scores[:, : len(task.answers.labels.all)].argmax(axis=1)
    if kind == "Binary":
        return np.where(scores[:, 0] > 0, 1, -1)
    if kind == "Ordinal":
        return np.digitize(scores[:, 0], (-2.0, 0.0, 2.0))
    if kind in ("Multilabel", "FScore"):
        return (scores[:, :3] > 0).astype(int)
    if kind == "FixedSize":
        return (scores[:, :4].argsort(axis=1).argsort(axis=1) < 2).astype(int)
    if kind == "LabelRanking":
        return scores[:, :4].argsort(axis=1).argsort(axis=1)
    if kind == "Matching":
        return scores[:, :3].argsort(axis=1).argsort(axis=1)
    raise ValueError(kind)


def played(learner, task, **given):
    inputs, scores = dense()
    made = labels(task, scores)
    trace = learner.run(inputs, made, **given)
    return {"": trace, "after": learner.predict_rows(inputs[:40])}


def ogd(loss, decoder=None, **given):
    return lambda: played(dl.OGD(loss, decoder, **given), loss.task)


def auto(task, given=(), **options):
    return lambda: played(dl.auto(task, **options), task, **dict(given))


def sparse_rows():
    inputs = sparse.random_array((ROUNDS, 300), density=0.02, format="csr", rng=generator())
    scores = inputs @ generator().standard_normal((300, 3))
    return inputs, scores.argmax(axis=1)


def items():
    """Return queries of four to seven documents with relevances."""
    random = generator()
    planted = random.standard_normal(5)
    queries = [random.standard_normal((int(n), 5)) for n in random.integers(4, 8, 160)]
    return queries, [np.clip(np.round(q @ planted), 0, 2).astype(int) for q in queries]


def chains():
    """Return sequences of one to six positions with tags."""
    random = generator()
    planted = random.standard_normal((3, 5))
    rows = [random.standard_normal((int(n), 5)) for n in random.integers(1, 7, 160)]
    return rows, [(x @ planted.T).argmax(axis=1) for x in rows]


def over(learner, stream):
    def play():
        inputs, made = stream()
        return {"": learner().run(inputs, made)}

    return play


def blocks():
    """Return rows whose second column is a category."""
    inputs, scores = dense()
    inputs = inputs.copy()
    inputs[:, 1] = np.clip(np.round(3.0 + inputs[:, 1]), -1, 6)
    return inputs, ((inputs[:, 1] % 2 > 0) ^ (scores[:, 0] > 0)).astype(int)


def grown():
    inputs, scores = dense()
    two, three = scores[:, :2].argmax(axis=1), scores[:, :3].argmax(axis=1)
    made = {}
    for name, learner in (
        ("ogd", dl.OGD(L.Logistic(T.Multiclass(2)))),
        ("auto", dl.auto(T.Multiclass(2))),
    ):
        made[f"{name} before"] = learner.run(inputs[:120, :4], two[:120])
        more = learner.grown(classes=3, features=6)
        made[f"{name} after"] = more.run(inputs[120:], three[120:])
    return made


def late(learner):
    def play():
        inputs, scores = dense()
        one, delay = learner(), dl.delays.Geometric(20)
        made = one.run(inputs[:200], scores[:200, :3].argmax(axis=1), delay=delay)
        rest = one.run(inputs[200:], scores[200:, :3].argmax(axis=1), delay=delay)
        return {"": made, "rest": rest}

    return play


def weighted(learner):
    heavy = generator().choice([0.0, 0.3, 1.0, 5.0], ROUNDS)
    return lambda: played(learner(), THREE, sample_weight=heavy)


def keyed(learner, **given):
    def play():
        inputs, scores = dense()
        keys = generator().integers(0, 9, ROUNDS)
        fleet = dl.Keyed(learner(), **given)
        return {"": fleet.run(keys, inputs, scores[:, :3].argmax(axis=1))}

    return play


def told():
    """Return what steps, tickets out of order and forgotten ones leave of two learners."""
    inputs, scores = dense()
    made = scores[:, :3].argmax(axis=1)
    after = {}
    for name, one in (("ogd", dl.OGD(L.Logistic(THREE))), ("auto", dl.auto(THREE))):
        steps = [one.step(inputs[t], int(made[t])).prediction for t in range(60)]
        tickets = [one.ask(x) for x in inputs[60:90]]
        one.forget(tickets.pop(3))
        for k in generator().permutation(len(tickets)):
            one.tell(tickets[k], int(made[60 + k]))
        after[f"{name} steps"], after[name] = steps, one.run(inputs[90:], made[90:])
    return after


class Own(L.Loss):
    """A squared margin, for learners without kernels."""

    task, self_bound, convex = T.Binary(), 2.0, True
    argmax_ratio = 1.0

    def value_and_grad(self, theta, label):
        slack = max(0.0, 1.0 - float(label) * theta[0])
        return slack**2, np.array([-2.0 * float(label) * slack])

    def config(self):
        return {}


def plain():
    loss = L.Scaled(Own(), 2.0)
    return played(dl.OGD(loss, D.Argmax(loss)), loss.task)


def fenchel(task, scale):
    return L.FenchelYoung(task, dl.regularizers.Quadratic(scale))


LOGISTIC, DOUBLE = L.Logistic(THREE), L.Scaled(L.Logistic(THREE), 2.0)
MAPS = (
    *(
        F.Standardise(),
        F.Hats(6),
        F.Bins(4),
        F.Crosses(4),
        F.Quadratic(),
        F.Ranks(),
        F.Recent(50.0),
    ),
    *(F.Fourier(20, bandwidth=1.0), F.RandomTrees(4, depth=3), F.Lags(2, 3)),
    F.Union(F.Standardise(), F.Chain(F.Hats(4), F.Standardise())),
)
STRUCTURES = (
    *(T.Multilabel(3), T.FixedSize(4, 2), T.Ordinal(4), T.LabelRanking(4), T.Matching(3)),
    *(T.FScore(3), T.CostSensitive(1.0 - np.eye(3)), T.Abstaining(THREE, 0.3)),
)
FLEET = {"random": lambda: dl.OGD(LOGISTIC), "fast": lambda: dl.auto(THREE, effort="fast")}


def cases():
    """Return what is played, by name: each case returns traces or lists by name."""
    made = {
        "dense": ogd(LOGISTIC),
        "binary": ogd(L.Logistic(T.Binary())),
        "smooth hinge": ogd(L.SmoothHinge(THREE), D.GapOptimal(L.SmoothHinge(THREE))),
        "hinge": ogd(L.Hinge(THREE, 0.5), D.Argmax(L.Hinge(THREE, 0.5)), rate=R.Constant(0.1)),
        "uniform mix, adagrad": ogd(LOGISTIC, D.UniformMix(LOGISTIC), rate=R.AdaGrad()),
        "step optimal, restarts": ogd(
            LOGISTIC, D.StepOptimal(LOGISTIC), restart=dl.detectors.Cusum(), seed=3
        ),
        "nearest vertex, constant": ogd(LOGISTIC, D.NearestVertex(LOGISTIC), rate=R.Constant(0.2)),
        "free rate": ogd(DOUBLE, D.Argmax(DOUBLE), rate=R.Polyak(monotone=False, cap=20.0)),
        "unbounded": ogd(
            DOUBLE, D.Argmax(DOUBLE), rate=R.Decaying(2.0), domain=dl.domains.Unbounded()
        ),
        "float32": ogd(DOUBLE, D.Argmax(DOUBLE), intercept=True, dtype=np.float32),
        "plain": plain,
        "sparse": over(lambda: dl.OGD(LOGISTIC), sparse_rows),
        "sparse float32": over(lambda: dl.OGD(LOGISTIC, dtype=np.float32), sparse_rows),
        "sparse auto": over(lambda: dl.auto(THREE), sparse_rows),
        "items": over(lambda: dl.OGD(L.ConvolutionalFenchelYoung(T.NDCG(max_relevance=2))), items),
        "items auto": over(lambda: dl.auto(T.NDCG(max_relevance=2)), items),
        "sequences": over(lambda: dl.OGD(L.Scaled(L.CRF(T.Sequence(3)), 2.0)), chains),
        "sequences auto": over(lambda: dl.auto(T.Sequence(3)), chains),
        "late": late(lambda: dl.OGD(LOGISTIC)),
        "late auto": late(lambda: dl.auto(THREE)),
        "weighted": weighted(lambda: dl.OGD(LOGISTIC)),
        "weighted auto": weighted(lambda: dl.auto(THREE)),
        "grown": grown,
        "auto of blocks": over(lambda: dl.auto(T.Multiclass(2), categories={1: 5}), blocks),
        "told": told,
        "auto": auto(THREE),
        "auto binary": auto(T.Binary()),
        "auto best": auto(THREE, effort="best"),
        "auto fast, guarded vote": auto(THREE, effort="fast", combine="vote", budget=1.5),
        "auto float32": auto(THREE, dtype=np.float32),
        "keyed": keyed(FLEET["random"]),
        "keyed shared": keyed(FLEET["random"], start="shared"),
        "keyed auto": keyed(FLEET["fast"]),
        "keyed auto shared": keyed(FLEET["fast"], start="shared"),
        "bandit": auto(THREE, feedback="bandit"),
        "bandit late": auto(THREE, {"delay": dl.delays.Fixed(9)}, feedback="bandit"),
        "clicks": auto(T.Multilabel(3), feedback="clicks"),
        "loss only": lambda: played(
            dl.bandit.LossOnly(fenchel(T.FixedSize(4, 2), 8.0)), T.FixedSize(4, 2)
        ),
    }
    made |= {f"map {part!r}": ogd(DOUBLE, D.Argmax(DOUBLE), features=part) for part in MAPS}
    for task in STRUCTURES:
        made[f"auto {task!r}"] = auto(task)
    for task, scale in ((T.Multilabel(3), 8.0), (T.LabelRanking(4), 1.0), (T.Ordinal(4), 4.0)):
        made[f"quadratic {task!r}"] = ogd(fenchel(task, scale))
    for task in (THREE, T.LabelRanking(4), T.Matching(3), T.FScore(3), T.FixedSize(4, 2)):
        made[f"convolutional {task!r}"] = ogd(L.ConvolutionalFenchelYoung(task))
    return made


def columns(found):
    """Return the columns of traces and lists, by name."""
    made = {}
    for name, trace in found.items():
        if isinstance(trace, list):
            made[name] = np.array([np.ravel(one) for one in trace])
            continue
        for column in COLUMNS:
            values = getattr(trace, column, None)
            if values is not None:
                made[f"{name} {column}".strip()] = np.asarray(values)
        for k, member in enumerate(getattr(trace, "members", None) or ()):
            for column in ("loss", "eta", "prediction"):
                values = getattr(member, column, None)
                if values is not None:
                    made[f"{name} member {k} {column}".strip()] = np.asarray(values)
    return made


def digests(values):
    """Return the total, and digests of growing parts of a column."""
    numbers = np.ascontiguousarray(values, dtype=np.float64)
    sums = hashlib.sha256()
    marks = []
    for part in np.array_split(numbers, PIECES):
        sums.update(part.tobytes())
        marks.append(sums.hexdigest()[:4])
    return [float(f"{np.nansum(numbers):.6g}"), " ".join(marks)]


def played_case(play):
    """Return digests of all columns; members share one, which says that one of them has changed."""
    made = columns(play())
    own = {name: values for name, values in made.items() if "member " not in name}
    found = {name: digests(values) for name, values in own.items()}
    rest = [np.asarray(v, np.float64).reshape(len(v), -1) for k, v in made.items() if k not in own]
    if rest:
        rounds = min(map(len, rest))
        found["members"] = digests(np.hstack([one[-rounds:] for one in rest]))
    return found


def changes(old, new):
    """Say where a case differs from what it was, a line for every column."""
    said = [f"{name}: is gone" for name in old.keys() - new.keys()]
    said += [f"{name}: is new" for name in new.keys() - old.keys()]
    for name in sorted(old.keys() & new.keys()):
        (was, marks), (total, found) = old[name], new[name]
        pairs = list(zip(marks.split(), found.split(), strict=True))
        if marks != found:
            first = next(k for k, (a, b) in enumerate(pairs) if a != b)
            said.append(
                f"{name}: differs from part {first + 1} of {PIECES} on, {was:g} -> {total:g}"
            )
    return said


def main():
    old = json.loads(PATH.read_text()) if PATH.exists() else {"machine": "", "cases": {}}
    made = {"machine": machine(), "cases": {}}
    if made["machine"] != old["machine"]:
        print(f"golden.json is of another machine: {old['machine']}; this is {made['machine']}")
    for name, play in cases().items():
        made["cases"][name] = played_case(play)
        said = changes(old["cases"].get(name, {}), made["cases"][name])
        print(f"{name}: {'equal' if not said else f'{len(said)} columns differ'}", flush=True)
        for line in said:
            print(f"    {line}")
    for name in old["cases"].keys() - made["cases"].keys():
        print(f"{name}: is gone")
    if "--write" in sys.argv[1:]:
        lines = [
            f"{json.dumps(k)}: {json.dumps(v, sort_keys=True)}" for k, v in made["cases"].items()
        ]
        about = json.dumps(made["machine"])
        text = ",\n".join(lines)
        PATH.write_text(f'{{"machine": {about}, "cases": {{\n{text}\n}}}}\n')
        print(f"wrote {PATH.name}")


if __name__ == "__main__":
    main()
