"""What the theory promises and forbids, on streams made for it; certificates as pictures."""

import dataclasses
import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.optimize import minimize

import driftline as dl
from driftline.app.cli.certify import certify
from driftline.app.cli.guarantees import guarantees
from driftline.certificates.plots import _bound_curves, plot
from driftline.paper.adversary import play_adversary
from driftline.paper.constant_mistakes import HalfwayFlip
from driftline.paper.guarantees import (
    constant_mistakes,
    hinge_appendix,
    hinge_numbers,
    play_lower_bound,
)

PNG = b"\x89PNG"


def smooth_hinge(margin):
    return 1.0 - 2.0 * margin if margin <= 0.0 else max(0.0, 1.0 - margin) ** 2


def is_png(path):
    return path.read_bytes()[:4] == PNG


# -- the lower bound


@pytest.mark.parametrize(("fixed", "path"), [(60, 40), (0, 50), (50, 0), (1, 0), (0, 1), (1, 1)])
def test_lower_bound_keeps_its_promises(fixed, path):
    for seed in range(5):
        stream = dl.streams.LowerBound(fixed, path, seed)
        loss = dl.losses.SmoothHinge(stream.task)
        F, P, before = 0.0, 0.0, None
        for t in range(fixed + path):
            U, label = stream.comparator.at(t), stream.labels[t]
            assert np.linalg.norm(U) == pytest.approx(1.0)
            scores = U @ stream.inputs[t]
            value, _ = loss.value_and_grad(scores, label)
            assert value == smooth_hinge(scores[label] - scores[1 - label])
            assert value in ((0.0, 3.0) if t < fixed else (0.0,))
            move = 0.0 if before is None else float(np.linalg.norm(U - before))
            assert move == 0.0 or move == pytest.approx(np.sqrt(2.0))
            assert move == 0.0 or t >= fixed
            F, P, before = F + value, P + move, U
        assert F <= 3 * fixed and np.sqrt(2.0) * path >= P - 1e-9
        assert stream.comparator.path_length == pytest.approx(P)
        assert (F + P) / 6 <= (fixed + path) / 2
        np.testing.assert_array_equal(stream.starts, stream.comparator.starts)
        assert len(stream) == fixed + path and stream.domain == dl.domains.Ball(2.0)


def test_lower_bound_tosses_fair_and_independent_coins():
    labels = dl.streams.LowerBound(20_000, 20_000, seed=1).labels
    heads = labels.astype(bool)
    assert abs(heads.mean() - 0.5) < 4 * 0.5 / np.sqrt(40_000)
    for lag in (1, 2, 3):
        same = heads[lag:] == heads[:-lag]
        assert abs(same.mean() - 0.5) < 4 * 0.5 / np.sqrt(40_000 - lag)
    again = dl.streams.LowerBound(20_000, 20_000, seed=1).labels
    other = dl.streams.LowerBound(20_000, 20_000, seed=2).labels
    assert (labels == again).all() and abs((labels == other).mean() - 0.5) < 0.02


def test_a_learner_with_the_stream_s_seed_does_not_know_its_labels():
    gain = 0.0
    for seed in range(40):
        uniforms = np.random.default_rng(seed).random(500)
        labels = dl.streams.LowerBound(250, 250, seed).labels
        gain += ((uniforms < 0.5) == labels).sum()
    assert abs(gain / 20_000 - 0.5) < 4 * 0.5 / np.sqrt(20_000)


@pytest.fixture(scope="module")
def lower_rows():
    return play_lower_bound(100, 100, seeds=10)


def test_no_learner_does_better_than_guessing(lower_rows):
    assert len(lower_rows) == 16
    for row in lower_rows:
        # The number of mistakes is binomial, whatever the learner.
        assert abs(row["target_loss"] - 0.5) < 4 * 0.5 / np.sqrt(2000), row
        assert abs(row["risk"] - 0.5) < 4 * 0.5 / np.sqrt(2000), row
        assert row["error"] > 0.0 and row["risk"] >= row["lower"]
        assert 0.0 < row["F / rounds_fixed"] <= 3.0
        assert 0.0 < row["P / rounds_path"] <= np.sqrt(2.0)
        assert row["upper"] is None or row["upper"] >= row["risk"]


def test_comparators_are_measured_by_the_plain_loss(lower_rows):
    assert len({round(row["F / rounds_fixed"], 9) for row in lower_rows}) == 1
    assert len({round(row["lower"], 9) for row in lower_rows}) == 1


# -- mistakes that do not grow


@pytest.mark.parametrize("margin", [0.1, 0.25, 0.9])
def test_halfway_flip_is_separable_by_weights_that_flip(margin):
    stream = HalfwayFlip(400, margin, seed=3)
    np.testing.assert_allclose(np.linalg.norm(stream.inputs, axis=1), 1.0)
    assert (np.abs(stream.inputs @ [1, 1]) / np.sqrt(2) >= margin - 1e-12).all()
    for t in range(400):
        scores = stream.comparator.at(t) @ stream.inputs[t]
        assert scores[stream.labels[t]] - scores[1 - stream.labels[t]] >= 1.0
    assert stream.comparator.largest_norm <= stream.domain.radius
    assert set(stream.labels[:200]) == set(stream.labels[200:]) == {0, 1}


def test_no_fixed_weights_have_less_loss_than_zero_weights():
    stream = HalfwayFlip(200, 0.25, seed=0)
    signs = 1.0 - 2.0 * stream.labels

    def total(w):
        return sum(smooth_hinge(m) for m in signs * (stream.inputs @ w))

    generator = np.random.default_rng(0)
    starts = [np.zeros(2), *generator.standard_normal((4, 2))]
    best = min(minimize(total, start, method="Nelder-Mead").fun for start in starts)
    assert best == pytest.approx(200.0, abs=1e-6)
    for w in generator.standard_normal((20, 2)):
        assert (signs * (stream.inputs @ w) < 0.0).sum() == 100


def test_mistakes_do_not_grow_with_the_rounds(tmp_path):
    rows = constant_mistakes((1_000, 10_000), seeds=2, folder=tmp_path)
    assert is_png(tmp_path / "constant.png")
    short, long = rows[:4], rows[4:]
    for before, after in zip(short, long, strict=True):
        assert before["learner"] == after["learner"]
        assert after["expected"] <= before["expected"] + 6.0
        assert after["worst_case"] == pytest.approx(before["worst_case"])
        assert after["fixed_loss"] == 10 * before["fixed_loss"] == 10_000
        for row in (before, after):
            assert row["comparator_loss"] == 0.0
            assert 1.0 < row["expected"] <= row["largest"] <= row["worst_case"]
            # Four times the root of the variance, which is at most the mean.
            assert abs(row["sampled"] - row["expected"]) < 4 * np.sqrt(row["expected"] / 2)


def test_worst_case_is_the_theorem_s():
    rows = constant_mistakes((100,), seeds=1, margin=0.5)
    D = 2.0 * np.sqrt(2.0)
    gap, argmax = D * (D / 2 + D) / (1 / 8), D * (D / 2 + D) / (3 / 64)
    wanted = [gap, gap, argmax, argmax]
    assert [row["worst_case"] for row in rows] == pytest.approx(wanted, rel=1e-6)


# -- hinge losses


def test_hinge_numbers_tell_the_appendix():
    rows = {(row["loss"], row["margin"]): row for row in hinge_numbers()}
    for margin in (0.0, 1.0):
        smooth = rows["smooth hinge", margin]
        assert smooth["ratio"] == pytest.approx(4.0) == smooth["self_bound"]
        assert abs(smooth["jump"]) < 1e-7 and smooth["above_chord"] < 1e-12
    whole = rows["hinge, kappa = 1", 1.0]
    assert whole["ratio"] > 1e7 and whole["self_bound"] == np.inf
    assert abs(whole["jump"]) < 1e-7 and whole["above_chord"] < 1e-12
    cut = rows["hinge, kappa = 1/2", 0.5]
    assert cut["ratio"] == pytest.approx(2.0, rel=1e-6) and cut["self_bound"] == 2.0
    assert cut["jump"] == pytest.approx(0.5) and cut["above_chord"] == pytest.approx(0.25)


def test_hinge_appendix_is_drawn(tmp_path):
    path = hinge_appendix(tmp_path / "new")
    assert path.name == "hinge.png" and is_png(path)


# -- pictures of certificates


def made(rate=None, rounds=300, stream=None, domain=None):
    stream = dl.streams.LabelFlips(rounds, 2, form="matrix") if stream is None else stream
    loss = dl.losses.SmoothHinge(stream.task)
    domain = dl.domains.Ball(8.0) if domain is None else domain
    learner = dl.OGD(loss, rate=rate, domain=domain)
    trace = learner.run(stream)
    return dl.certify(trace, stream.comparator, stream), trace, stream


def labels_of(panel):
    return "\n".join(panel.get_legend_handles_labels()[1])


def test_plot_has_three_panels_over_the_same_rounds(tmp_path):
    certificate, _, _ = made()
    figure = plot(certificate, path=tmp_path / "certificate.png")
    assert is_png(tmp_path / "certificate.png")
    totals, steps, gaps = figure.axes
    assert totals.get_xlim() == steps.get_xlim() == gaps.get_xlim() == (0.0, 300.0)
    assert steps.get_yscale() == "log"
    for words in ("expected target loss", "exact bound", "diameter", "worst case", "guessing"):
        assert words in labels_of(totals)
    assert "floor, 0.125" in labels_of(steps) and "above" not in labels_of(steps)
    assert "comparator's loss" in labels_of(gaps)
    marks = [line.get_xdata()[0] for line in gaps.lines if len(set(line.get_xdata())) == 1]
    assert marks == [100, 200]


def test_plotted_bounds_are_those_of_the_prefixes():
    certificate, _, _ = made(dl.rates.Polyak(monotone=False, cap=3.0))
    edges = np.array([0, 1, 99, 100, 101, 250, 300])
    curves = _bound_curves(certificate, edges)
    for k, t in enumerate(edges[1:], start=1):
        part = certificate.over(0, int(t))
        for form, curve in curves.items():
            assert curve[k] == pytest.approx(getattr(part, form), rel=1e-9), (form, t)


def test_plot_says_what_leaves_the_panel_and_what_does_not_exist():
    short, _, _ = made(rounds=3)
    words = f"worst case, {short.worst_case:.4g}\n(leaves the panel)"
    assert words in labels_of(plot(short).axes[0])
    turning = dl.streams.Rotation(200, 1)
    free, _, _ = made(dl.rates.AdaGrad(), stream=turning)
    totals, steps, _ = plot(free).axes
    assert "worst case" not in labels_of(totals) and "199 rounds" in labels_of(totals)
    assert "above its range" in labels_of(steps)
    unbounded, _, _ = made(dl.rates.Constant(0.1), domain=dl.domains.Unbounded())
    assert "diameter" not in labels_of(plot(unbounded).axes[0])
    part = made()[0].over(50, 150)
    assert plot(part).axes[0].get_xlim() == (50.0, 150.0)


def test_plot_does_without_bounds(monkeypatch):
    certificate, _, _ = made(rounds=30)
    reasons = dict.fromkeys(("worst_case", "diameter", "exact", "weighted"), "no reason")
    monkeypatch.setattr(type(certificate), "bounds", lambda self: reasons)
    assert "bound" not in labels_of(plot(certificate).axes[0])


def test_a_certificate_from_sums_is_drawn_with_the_trace():
    stream = dl.streams.LowerBound(40, 40)
    learner = dl.OGD(dl.losses.SmoothHinge(stream.task), domain=stream.domain)
    learner.watch(stream.comparator)
    trace = learner.run(stream)
    certificate = dl.certify(learner)
    totals, _, gaps = plot(certificate, trace).axes
    assert "exact bound" in labels_of(totals) and "comparator" not in labels_of(gaps)
    with pytest.raises(dl.InputError, match="kept no rounds.*give the trace"):
        plot(certificate)
    short = dataclasses.replace(
        trace, **{name: column[:70] for name, column in trace.to_dict().items()}
    )
    with pytest.raises(dl.InputError, match="of 80 rounds, but the trace has 70"):
        plot(certificate, short)


# -- commands


@pytest.fixture
def files(tmp_path):
    _, trace, stream = made(rounds=60)
    trace.save(tmp_path / "trace.npz")
    np.savez(tmp_path / "data.npz", inputs=stream.inputs, labels=stream.labels)
    weights = stream.comparator.weights
    np.savez(tmp_path / "path.npz", weights=weights, starts=stream.starts)
    np.savez(tmp_path / "fixed.npz", weights=weights[0])
    np.savez(tmp_path / "vector.npz", weights=weights[0, 0])
    np.savez(tmp_path / "loose.npz", weights=weights)
    np.savez(tmp_path / "wide.npz", weights=np.zeros((2, 5)))
    np.savez(tmp_path / "words.npz", weights=np.array([["a", "b"]]))
    np.savez(tmp_path / "short.npz", inputs=stream.inputs[:50], labels=stream.labels[:50])
    np.savez(tmp_path / "half.npz", inputs=stream.inputs)
    np.savez(tmp_path / "objects.npz", weights=np.array([None, {}], dtype=object))
    (tmp_path / "text.npz").write_text("no arrays")
    return tmp_path


def run_certify(folder, trace="trace", data="data", comparator="path", more=()):
    names = [f"{folder}/{name}.npz" for name in (trace, data, comparator)]
    arguments = [names[0], "--data", names[1], "--comparator", names[2], *more]
    return CliRunner().invoke(certify, arguments)


def test_certify_prints_and_draws(files):
    done = run_certify(files, more=["--plot", str(files / "plot.png")])
    assert done.exit_code == 0, done.output
    assert "audit: nothing to object to" in done.stdout and is_png(files / "plot.png")
    assert "plot.png" in done.stderr
    certificate, _, _ = made(rounds=60)
    assert str(certificate) in done.stdout
    assert "path length P = 0\n" in run_certify(files, comparator="fixed").stdout


def test_certify_prints_json(files):
    done = run_certify(files, more=["--json", "--plot", str(files / "plot.png")])
    assert done.exit_code == 0, done.output
    numbers = json.loads(done.stdout)
    certificate, _, _ = made(rounds=60)
    assert numbers == certificate.to_dict()
    assert numbers["valid"] is True and numbers["stop"] == 60


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"data": "short"}, "the trace has 60 rounds, but there are 50 inputs and 50 labels"),
        ({"data": "missing"}, "does not exist"),
        ({"data": "half"}, "has no array labels, only inputs"),
        ({"data": "text"}, "is not an .npz file of plain arrays"),
        ({"trace": "data"}, "is not a trace"),
        ({"trace": "missing"}, "does not exist"),
        ({"comparator": "missing"}, "does not exist"),
        ({"comparator": "vector"}, "but they have shape (2,) without starts"),
        ({"comparator": "loose"}, "but they have shape (3, 2, 2) without starts"),
        ({"comparator": "wide"}, "have shape (2, 5), but the learner's have (2, 2)"),
        ({"comparator": "words"}, "must be numbers"),
        ({"comparator": "objects"}, "is not an .npz file of plain arrays"),
    ],
)
def test_certify_names_bad_files(files, given, words):
    done = run_certify(files, **given)
    assert done.exit_code != 0 and isinstance(done.exception, SystemExit)
    assert words in " ".join(done.output.split()), done.output


@pytest.mark.slow
def test_guarantees_prints_tables_and_draws(tmp_path):
    out = tmp_path / "figures"
    arguments = ["--rounds", "200", "--seeds", "2", "--out", str(out)]
    done = CliRunner().invoke(guarantees, arguments)
    assert done.exit_code == 0, done.output
    for words in ("Labels flip half-way", "The lower bound", "Hinge losses", "constant.png"):
        assert words in done.output
    assert is_png(out / "constant.png") and is_png(out / "hinge.png")
    odd = CliRunner().invoke(guarantees, ["--rounds", "201", "--out", str(out)])
    assert odd.exit_code == 1 and "rounds must be even" in odd.output


# -- bad input


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: dl.streams.LowerBound(0, 0), "at least one round"),
        (lambda: dl.streams.LowerBound(-1, 5), "rounds_fixed must be .* at least 0, but is -1"),
        (lambda: dl.streams.LowerBound(5, 1.5), "rounds_path must be a whole number"),
        (lambda: HalfwayFlip(7), "rounds must be even"),
        (lambda: HalfwayFlip(8, margin=1.0), "margin must lie between 0 and 1, but is 1.0"),
        (lambda: constant_mistakes((10,), seeds=0), "seeds must be .* at least 1, but is 0"),
        (lambda: play_lower_bound(5, 5, seeds=1), "seeds must be .* at least 2, but is 1"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(dl.InputError, match=words):
        call()


@pytest.mark.parametrize(
    "rate",
    [dl.rates.Constant(), dl.rates.AdaGrad(), dl.rates.Polyak(), dl.rates.Polyak(monotone=False)],
    ids=repr,
)
def test_an_adversary_costs_every_learner_half_in_every_round(rate):
    """And so at least a sixth of what the comparator pays and moves, whichever way it goes."""
    loss = dl.losses.SmoothHinge(dl.tasks.Multiclass(2))
    certain = dl.losses.Scaled(loss, 4.0)
    for decoder in (
        dl.decoders.GapOptimal(loss),
        dl.decoders.UniformMix(loss),
        dl.decoders.StepOptimal(loss),
        dl.decoders.Argmax(certain),
    ):
        learner = dl.OGD(decoder.loss, decoder, rate, dl.domains.Ball(2.0))
        labels, risk = play_adversary(learner, 60)
        assert risk.min() >= 0.5 - 1e-12
        losses = 3.0 * (labels != labels[0]).sum()
        moves = np.sqrt(2.0) * (np.diff(labels) != 0).sum()
        assert risk.sum() >= max(losses, moves) / 6.0
