"""Files of learners: the same bits as without them, and nothing from files that are not ours."""

import io
import json
import zipfile

import numpy as np
import pytest
from howmany import number
from scipy import sparse

import driftline as dl
from driftline.errors import InputError
from driftline.state import archive
from driftline.streams import Planted, PlantedRankings, PlantedSequences

T = dl.tasks

#: Of the streams that are played.
ROUNDS = number(20, 40)


def argmax(loss, **options):
    loss = dl.losses.Scaled(loss, 2.0)
    return dl.OGD(loss, dl.decoders.Argmax(loss), **options)


def conv(task, **options):
    return dl.OGD(dl.losses.ConvolutionalFenchelYoung(task), **options)


def played(stream):
    return stream.inputs, stream.labels


def dense(task, rounds=ROUNDS):
    return played(Planted(task, rounds=rounds, features=5, flips=2, seed=0))


def classes():
    return dense(T.Multiclass(3), number(40, 60))


def thin():
    inputs, labels = classes()
    return sparse.csr_array(np.where(np.abs(inputs) < 0.3, 0.0, inputs)), labels


COST = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [0.5, 1.0, 0.0]])

#: How a learner is made, and what it plays.
CASES = {
    "classes": (lambda: dl.OGD(dl.losses.Logistic(T.Multiclass(3))), classes),
    "classes, sparse": (lambda: dl.OGD(dl.losses.Logistic(T.Multiclass(3))), thin),
    "classes, single": (
        lambda: dl.OGD(dl.losses.Logistic(T.Multiclass(3)), dtype=np.float32),
        classes,
    ),
    "classes, sparse, single": (
        lambda: dl.OGD(dl.losses.Logistic(T.Multiclass(3)), dtype=np.float32),
        thin,
    ),
    "classes, restarts": (
        lambda: argmax(
            dl.losses.Logistic(T.Multiclass(3)),
            rate=dl.rates.Decaying(2.0),
            restart=dl.detectors.Cusum(0.5, 1.5, 0.1, 5),
            intercept=True,
        ),
        classes,
    ),
    "classes, adagrad": (
        lambda: dl.OGD(dl.losses.SmoothHinge(T.Multiclass(3)), rate=dl.rates.AdaGrad()),
        classes,
    ),
    "signs": (lambda: dl.OGD(dl.losses.Logistic(T.Binary())), lambda: dense(T.Binary())),
    "costs": (lambda: conv(T.CostSensitive(COST)), lambda: dense(T.CostSensitive(COST))),
    "tags": (lambda: dl.OGD(dl.losses.Logistic(T.Multilabel(4))), lambda: dense(T.Multilabel(4))),
    "sets": (lambda: conv(T.FixedSize(4, 2)), lambda: dense(T.FixedSize(4, 2))),
    "levels": (lambda: conv(T.Ordinal(4)), lambda: dense(T.Ordinal(4))),
    "label rankings": (lambda: conv(T.LabelRanking(4)), lambda: dense(T.LabelRanking(4))),
    "matchings": (
        lambda: dl.OGD(dl.losses.SparseMAP(T.Matching(3), scale=4.0)),
        lambda: dense(T.Matching(3)),
    ),
    "scores": (lambda: conv(T.FScore(2)), lambda: dense(T.FScore(2), 8)),
    "documents": (
        lambda: conv(T.NDCG(max_relevance=2)),
        lambda: played(PlantedRankings(T.NDCG(max_relevance=2), rounds=ROUNDS, seed=0)),
    ),
    "words": (
        lambda: argmax(dl.losses.CRF(T.Sequence(3))),
        lambda: played(PlantedSequences(rounds=number(15, 30), tags=3, longest=4, seed=0)),
    ),
    "words, marginals": (
        lambda: dl.OGD(loss := dl.losses.CRF(T.Sequence(3)), dl.decoders.Marginal(loss)),
        lambda: played(PlantedSequences(rounds=number(15, 30), tags=3, longest=4, seed=0)),
    ),
    "committee": (lambda: dl.auto(T.Multiclass(3), effort="fast"), classes),
    "committee, sparse": (lambda: dl.auto(T.Multiclass(3), effort="fast"), thin),
    "committee, guarded": (
        lambda: dl.Committee(
            dl.auto(T.Multiclass(3), scaling=False, effort="fast").members, budget=1.5
        ),
        classes,
    ),
    "committee of words": (
        lambda: dl.auto(T.Sequence(3), effort="fast"),
        lambda: played(PlantedSequences(rounds=number(15, 30), tags=3, longest=4, seed=0)),
    ),
}


def same(a, b):
    names = ("risk", "target_loss", "prediction")
    for name in (*names, "weights") if hasattr(a, "members") else (*names, "loss", "eta"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("case", CASES)
def test_a_run_that_was_cut_goes_on_with_the_same_bits(case, tmp_path):
    make, data = CASES[case]
    inputs, labels = data()
    generator = np.random.default_rng(len(case))
    for cut in (0, *generator.integers(1, len(labels), number(1, 3))):
        whole, part = make(), make()
        if cut:
            same(whole.run(inputs[:cut], labels[:cut]), part.run(inputs[:cut], labels[:cut]))
        again = dl.load(part.save(tmp_path / "model"))
        same(whole.run(inputs[cut:], labels[cut:]), again.run(inputs[cut:], labels[cut:]))
        twice = dl.load(again.save(tmp_path / "model"))
        assert twice.rounds == len(labels)
        assert repr(twice) == repr(whole)


def test_a_look_ahead_is_kept(tmp_path):
    inputs, labels = classes()
    for make in (CASES["classes"][0], CASES["committee, guarded"][0]):
        one = make()
        one.run(inputs[:30], labels[:30])
        seen = one.predict(inputs[30])
        assert dl.load(one.save(tmp_path / "model")).step(inputs[30], labels[30]).prediction == seen


def test_a_learner_under_watch_says_what_to_do(tmp_path):
    stream = dl.streams.LabelFlips(rounds=20, flips=1, seed=0)
    one = dl.OGD(dl.losses.Logistic(stream.task))
    one.watch(stream.comparator)
    one.run(stream)
    with pytest.raises(InputError, match="watch\\(None\\)"):
        one.save(tmp_path / "model")
    one.watch(None)
    one.run(stream)
    dl.load(one.save(tmp_path / "model"))


# -- files that are not ours


@pytest.fixture
def saved(tmp_path):
    inputs, labels = classes()
    one = dl.auto(T.Multiclass(3), effort="fast")
    one.run(inputs, labels)
    return one.save(tmp_path / "model")


def rewritten(path, about=None, arrays=None, **options):
    """Write a file of ours anew, with changes."""
    old_about, old_arrays = archive.read(path)
    new_about = about(old_about) if about else old_about
    new_arrays = arrays(old_arrays) if arrays else old_arrays
    other = path.with_name("other")
    archive.write(other, new_about, new_arrays)
    return other


def refused(path, words=None):
    with pytest.raises(InputError, match=words) as caught:
        dl.load(path)
    assert len(str(caught.value)) < 2000


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        dl.load(tmp_path / "nothing")


def test_a_newer_format_names_itself(saved):
    refused(rewritten(saved, lambda about: about | {"format": 3}), "format 3")


def scaled(about, fields, whole=False):
    """Return a description with another state of the first member's map."""
    old = {} if whole else about["members"][0]["state"]["map"]
    return member(about, {"map": old | fields})


def member(about, fields):
    """Return a description with another state of the first member."""
    first, *rest = about["members"]
    return about | {"members": [first | {"state": first["state"] | fields}, *rest]}


@pytest.mark.parametrize(
    "change",
    [
        lambda about: about | {"kind": "os.system"},
        lambda about: {k: v for k, v in about.items() if k != "members"},
        lambda about: about | {"members": about["members"][:2]},
        lambda about: about | {"members": [{}]},
        lambda about: about | {"combine": "shout"},
        lambda about: about | {"state": {}},
        lambda about: about | {"state": about["state"] | {"version": 2}},
        lambda about: about | {"state": about["state"] | {"key": -1}},
        lambda about: about | {"state": about["state"] | {"key": "0"}},
        lambda about: about | {"state": about["state"] | {"key": None}},
        lambda about: about | {"state": about["state"] | {"tickets": 0.5}},
        lambda about: about | {"state": about["state"] | {"rounds": about["state"]["rounds"] + 1}},
        lambda about: scaled(about, {"constant": True}, whole=True),
        lambda about: scaled(about, {"features": 10**12}),
        lambda about: scaled(about, {"features": -1}),
        lambda about: scaled(about, {"dtype": "object"}),
        lambda about: member(about, {"rounds": about["state"]["rounds"] + 1}),
        lambda about: member(about, {"scale": 0.0}),
        lambda about: member(about, {"scale": float("nan")}),
        lambda about: member(about, {"norm_sq": -1.0}),
        lambda about: member(about, {"norm_sq": 1e9}),
        lambda about: member(about, {"refresh": 2**52}),
        lambda about: member(about, {"features": None}),
        lambda about: member(about, {"features": 3}),
        lambda about: member(about, {"transposed": 1}),
        lambda about: member(about, {"transposed": True}),
        lambda about: member(about, {"restarted": 2}),
        lambda about: member(about, {"nonsense": 0}),
        lambda about: member(about, {"key": None}),
    ],
)
def test_edited_descriptions_are_refused(saved, change):
    refused(rewritten(saved, change))


@pytest.mark.parametrize(
    "name", ["os.system", "builtins.eval", "tasks.Nothing", "losses", "", None]
)
def test_parts_that_are_not_registered_are_refused(saved, name):
    def change(about):
        about["members"][0]["config"]["loss"]["type"] = name
        return about

    refused(rewritten(saved, change), "registered")


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a | {"0.weights": np.full_like(a["0.weights"], np.nan)},
        lambda a: a | {"0.weights": np.full_like(a["0.weights"], 1e9)},
        lambda a: a | {"0.weights": a["0.weights"][:, :-1]},
        lambda a: a | {"0.weights": a["0.weights"].astype(np.float32)},
        lambda a: {k: v for k, v in a.items() if k != "0.weights"},
        lambda a: a | {"0.detector_memory": np.full_like(a["0.detector_memory"], np.nan)},
        lambda a: a | {"0.detector_memory": a["0.detector_memory"][:-1]},
        lambda a: a | {"0.rate_memory": np.zeros(7)},
        lambda a: {k: v for k, v in a.items() if k != "0.detector_memory"},
        lambda a: a | {"shares": a["shares"] * 2.0},
        lambda a: a | {"shares": a["shares"][:-1]},
        lambda a: a | {"0.map.state": a["0.map.state"] * np.nan},
        lambda a: a | {"0.map.state": a["0.map.state"][:-1]},
    ],
)
def test_edited_arrays_are_refused(saved, change):
    refused(rewritten(saved, arrays=change))


def entries(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def packed(path, content, compression=zipfile.ZIP_STORED):
    """Write a ZIP file with a good seal."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as file:
        for name, data in content:
            file.writestr(name, data)
    path.write_bytes(archive._sealed(made.getvalue()))
    return path


def test_tricks_of_archives_are_refused(saved, tmp_path):
    good, other = entries(saved), tmp_path / "trick"
    refused(packed(other, good.items(), zipfile.ZIP_DEFLATED), "is compressed")
    for name in ("../../evil.npy", "/etc/evil.npy", "a/b.npy", "run.py", ".npy"):
        refused(packed(other, [*good.items(), (name, good["shares.npy"])]), "no plain name")
    refused(packed(other, [("shares.npy", good["shares.npy"])]), "expected one about.json")
    with pytest.warns(UserWarning, match="Duplicate"):
        packed(other, [*good.items(), ("shares.npy", b"")])
    refused(other, "different names")
    for text in (b"", b"[]", b"{", b"\xff\xfe", b'{"format": "1"}', b"[" * 100_000):
        refused(packed(other, [("about.json", text)]))
    other.write_bytes(b"")
    refused(other)
    other.write_text("accuracy,0.9\n")
    refused(other)


def npy(shape, data=b"", kind="<f8", version=b"\x01\x00"):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY" + version + len(header).to_bytes(2, "little") + header + data


@pytest.mark.parametrize(
    "content",
    [
        npy((10**15,)),
        npy((2**62, 4)),
        npy((-1,)),
        npy((3,), b"\0" * 23),
        npy((3,), b"\0" * 25),
        npy((1,), b"\0" * 8, kind="|O"),
        npy((1,), b"\0" * 8, kind=">f8"),
        npy((1,), b"\0" * 16, kind="<c16"),
        npy((1,), b"\0" * 8, version=b"\x03\x00"),
        npy("__import__('os').system('true')"),
        b"\x80\x04\x95",
        b"",
    ],
)
def test_arrays_that_are_not_what_they_say_are_refused(saved, tmp_path, content):
    good = entries(saved)
    refused(packed(tmp_path / "trick", (good | {"shares.npy": content}).items()))


def test_damaged_files_are_refused(saved, tmp_path):
    """Two hundred files with bytes cut, changed or taken out are all refused."""
    content, other = saved.read_bytes(), tmp_path / "damaged"
    generator = np.random.default_rng(0)
    refusals = 0
    for trial in range(200):
        data = bytearray(content)
        place = int(generator.integers(0, len(data)))
        match trial % 4:
            case 0:
                del data[place:]
            case 1:
                data[place] ^= 1 << int(generator.integers(8))
            case 2:
                data[place : place + 16] = generator.bytes(16)
            case 3:
                del data[place : place + int(generator.integers(1, 50))]
        other.write_bytes(bytes(data))
        if bytes(data) != content:
            refused(other)
            refusals += 1
    assert refusals >= 199  # a random bit may be the one that was there
    dl.load(saved)


def test_a_failed_write_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()
    one = dl.load(saved)
    monkeypatch.setattr(json, "dumps", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        one.save(saved)
    assert saved.read_bytes() == before
    assert sorted(p.name for p in saved.parent.iterdir()) == ["model"]


@pytest.mark.parametrize("depth", [50, 900, 5000])
def test_deep_nests_are_refused(saved, tmp_path, depth):
    content = entries(saved)
    about = json.loads(content["about.json"])
    about["members"][0]["config"]["loss"] = "here"
    nest = "[" * depth + "]" * depth
    content["about.json"] = json.dumps(about).replace('"here"', nest).encode()
    refused(packed(tmp_path / "deep", content.items()))


def test_entries_on_top_of_each_other_are_refused(saved, tmp_path):
    """A small file could else be read as a thousand large arrays."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name, data in entries(saved).items():
            file.writestr(name, data)
        state = file.getinfo("0.weights.npy")
        for i in range(20):
            other = zipfile.ZipInfo(f"a{i}.npy")
            other.header_offset, other.CRC = state.header_offset, state.CRC
            other.file_size = other.compress_size = 1000
            file.filelist.append(other)
    (tmp_path / "bomb").write_bytes(archive._sealed(made.getvalue()))
    with pytest.raises(InputError, match="on top of each other"):
        dl.load(tmp_path / "bomb")
