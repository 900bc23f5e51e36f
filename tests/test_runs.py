"""What a run remembers: nothing of rows it has not learned from, and no more than it must."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.sparse import csr_array

from driftline.app import tables
from driftline.app.cli import main
from driftline.app.runs import CommitteeModel, Journal, Rounds, Run, load_model, new_model
from driftline.app.runs.audit_buffer import AuditBuffer
from driftline.app.runs.baselines import OfTags
from driftline.app.tables import Encoder, Options, guess, open_table
from driftline.app.tables.labels import ClassCodec
from driftline.errors import InputError
from driftline.state import archive


def call(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def table(rows=200, missing=0.2, seed=0):
    """Return lines of a table with a query, three numbers of which some are missing, a grade."""
    random = np.random.default_rng(seed)
    lines = []
    for i in range(rows):
        values = random.standard_normal(3)
        cells = ["" if random.random() < missing else f"{v:.4f}" for v in values]
        lines.append(",".join([f"q{i // 7}", *cells, str(int(values[0] > 0))]))
    return lines


@pytest.mark.parametrize("options", [["--ignore", "q"], ["--query", "q"]], ids=["rows", "queries"])
def test_means_are_those_of_rows_that_were_learned_from(tmp_path, monkeypatch, options):
    """A bad line stops a run; rows that were read and not learned from come again afterwards."""
    monkeypatch.setattr(tables, "open_table", partial(tables.open_table, rows=37))
    lines, path = table(), tmp_path / "t.csv"
    path.write_text("\n".join(["q,a,b,c,y", *lines]) + "\n")
    good, lines[130] = path.read_text(), "q18,1,oops,1,1"
    usual = [*options, "--missing", "mean", "--no-certify", "--quiet"]
    assert call("run", path, *usual, "--out", tmp_path / "whole").exit_code == 0
    path.write_text("\n".join(["q,a,b,c,y", *lines]) + "\n")
    stopped = call("run", path, *usual, "--out", tmp_path / "parts")
    assert stopped.exit_code == 2 and "oops" in stopped.output
    path.write_text(good)
    done = call("run", path, *usual, "--out", tmp_path / "parts")
    assert done.exit_code == 0, done.output
    one, two = (archive.read(tmp_path / name / "model.driftline") for name in ("whole", "parts"))
    assert one[0] == two[0]
    for name, array in one[1].items():
        np.testing.assert_array_equal(array, two[1][name])


def test_random_decoders_draw_anew_for_every_row(tmp_path):
    random = np.random.default_rng(0)
    inputs = random.standard_normal((300, 2))
    labels = (inputs[:, 0] + random.standard_normal(300) > 0).astype(int)
    encoder = Encoder(2, ClassCodec(["y"], ["u", "v"]))
    model = new_model("paper", encoder)
    model.learn(inputs, labels)
    chances = model.learner.members[0].distribution([0.1, 0.0])
    made = np.array(model.predict(np.tile([0.1, 0.0], (2000, 1))))
    share = dict(zip(chances.atoms, chances.weights, strict=True))[1]
    assert 0.1 < share < 0.9 and abs(made.mean() - share) < 0.05
    again = CommitteeModel(model.learner, encoder)
    assert again.predict(inputs) == CommitteeModel(model.learner, encoder).predict(inputs)


def test_rounds_that_are_kept_take_no_more_room_than_is_said():
    """Sparse rows are small beside the weights, which are kept from before the first alone."""
    random = np.random.default_rng(0)
    inputs = csr_array((np.ones(50), random.integers(0, 3000, 50), np.arange(51)), (50, 3000))
    rounds = Rounds(inputs, random.integers(0, 2, 50), 50, 50)
    encoder = Encoder(3000, ClassCodec(["y"], ["u", "v"]))
    run = Run(new_model("auto", encoder), AuditBuffer(None))
    for _ in range(4):
        run.learn(rounds)
    first, *rest = run.audit_buffer.traces
    assert first.origin is not None and all(trace.origin is None for trace in rest)
    assert all(m.first_weights is None for trace in rest for m in trace.members)
    weights = sum(member.first_weights.size for member in first.members)
    assert run.audit_buffer.size > weights > 6 * 2 * 3000
    small = Run(new_model("auto", encoder), AuditBuffer(weights // 2))
    small.learn(rounds)
    assert not small.audit_buffer.traces and "too long" in small.audit_buffer.reason


@pytest.mark.parametrize(
    "change",
    [
        {"loss": float("nan")},
        {"loss": -1.0},
        {"totals": [float("inf")]},
        {"totals": []},
        {"baselines": [10**30, 0, []]},
        {"baselines": [0, 0, [[0, -1]]]},
        {"baselines": [0.5, 0, []]},
    ],
    ids=repr,
)
def test_models_that_were_edited_are_refused(tmp_path, change):
    (tmp_path / "t.csv").write_text("a,y\n1,u\n2,v\n3,u\n")
    source = open_table(tmp_path / "t.csv")
    encoder, _ = guess(source, head := next(source.pieces()), Options())
    model = new_model("polyak", encoder)
    batch = encoder.bind(source).batch(head)
    model.learn(batch.inputs, batch.labels)
    model.save(tmp_path / "model")
    assert load_model(tmp_path / "model").rounds == 3
    about, arrays = archive.read(tmp_path / "model")
    for key in ("format", "driftline"):
        del about[key]
    about["run"] |= change
    with pytest.raises(InputError, match="model"):
        load_model(archive.write(tmp_path / "other", about, arrays))
    about["run"], about["table"]["columns"]["columns"] = {}, []
    with pytest.raises(InputError, match="model"):
        load_model(archive.write(tmp_path / "other", about, arrays))


def test_counts_of_other_tags_are_refused():
    one = OfTags(2)
    one.resume([[0, 1], [3, 4], 5])
    for state in ([[0], [3], 5], [[0, 1], [3], 5], [[0, 1], [3, 4], -1]):
        with pytest.raises(InputError):
            one.resume(state)


def test_journals_that_could_never_be_filled_are_refused(tmp_path):
    with pytest.raises(InputError, match="not 0"):
        Journal(["loss"], most=0)
    about = {"kind": "Journal", "names": ["a", "a"], "most": 4, "span": 1, "rounds": 0}
    arrays = {"blocks": np.zeros((0, 2))}
    for change in ({}, {"names": ["a", "b"], "most": 0}):
        with pytest.raises(InputError, match="no journal"):
            Journal.load(archive.write(tmp_path / "journal", about | change, arrays))


def test_a_journal_of_other_members_is_not_continued():
    encoder = Encoder(2, ClassCodec(["y"], ["u", "v"]))
    one, two = (Run(new_model(name, encoder)) for name in ("polyak", "auto"))
    assert Run(one.model, journal=one.journal).journal is one.journal
    with pytest.raises(InputError, match="other members"):
        Run(one.model, journal=two.journal)


@pytest.mark.parametrize("thorough", [False, True])
def test_weights_in_hindsight_are_looked_for_if_it_is_fast_or_asked_for(monkeypatch, thorough):
    from driftline.app.runs import guarantee

    random = np.random.default_rng(0)
    inputs = random.standard_normal((60, 3)) * (random.random((60, 3)) < 0.5)
    labels = (inputs[:, 0] > 0).astype(int)
    encoder = Encoder(3, ClassCodec(["y"], ["u", "v"]))
    for rows in (inputs, csr_array(inputs)):
        run = Run(new_model("auto", encoder), AuditBuffer(None))
        run.learn(Rounds(rows, labels, 60, 60))
        made = guarantee.guarantee_of(run.model, run.audit_buffer)
        assert made.searched and made.certificate.valid
        with monkeypatch.context() as patched:
            patched.setattr(guarantee, "MOST_WORK", 3 * 60)
            small = guarantee.guarantee_of(run.model, run.audit_buffer, thorough)
        assert small.searched == thorough and small.certificate.valid
        assert small.bound == made.bound
