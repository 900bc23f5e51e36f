"""Power is lost at any operation on a file: what was saved is there, and the run ends the same."""

from __future__ import annotations

import json
import re
from functools import partial

import numpy as np
import pytest
from commands import call, data, write_csv
from howmany import number
from power import Machine, PowerLost

from driftline import files
from driftline.app import tables
from driftline.app.runs import schedule
from driftline.app.runs.outputs import Outputs
from driftline.committee import CommitteeTrace

SAME = ("predictions.csv", "model.driftline", "journal.driftline")


@pytest.fixture
def trial(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "open_table", partial(tables.open_table, rows=40))
    monkeypatch.setattr(schedule, "SECONDS", 0.0)
    monkeypatch.setattr(schedule, "SHARE", np.inf)
    table = write_csv(tmp_path / "t.csv", *data(120))
    return Trial(tmp_path, table, monkeypatch)


class Trial:
    """One command under which power is lost, and what it leaves behind otherwise."""

    def __init__(self, folder, table, monkeypatch):
        self.folder, self.monkeypatch = folder, monkeypatch
        self.command = ("run", table, "--trace", "--out")
        assert call(*self.command, folder / "whole").exit_code == 0
        self.expected = self.found("whole")
        machine = self.lose("all", 10**9)[0]
        self.operations = machine.count

    def found(self, out):
        folder = self.folder / out
        made = {name: (folder / name).read_bytes() for name in SAME}
        made["certificate"] = json.loads((folder / "summary.json").read_text())["certificate"]
        trace = CommitteeTrace.load(folder / "trace.npz")
        made["trace"] = [trace.prediction.tobytes(), trace.weights.tobytes(), len(trace)]
        return made

    def lose(self, out, stop, **how):
        """Lose power at an operation; return the machine, and how many rows were saved by then."""
        folder = self.folder / out
        folder.mkdir()
        machine, saved, save = Machine(folder, stop, **how), [0], Outputs.save

        def noted(outputs, *arguments, **options):
            save(outputs, *arguments, **options)
            saved[0] = outputs.saved

        with self.monkeypatch.context() as patched:
            patched.setattr(files, "disk", machine)
            patched.setattr(Outputs, "save", noted)
            try:
                call(*self.command, folder)
            except PowerLost:
                machine.come_back()
        return machine, saved[0]

    def ends_well(self, stop, **how):
        """Say whether the run goes on where it was saved, and ends as it would have."""
        out = f"{stop} {how}"
        saved = self.lose(out, stop, **how)[1]
        done = call(*self.command, self.folder / out)
        rows = re.search(r"going on after row (\d+)|all (\d+) rows", done.output)
        rows = int((rows[1] or rows[2]) if rows else 0)
        return done.exit_code == 0 and rows >= saved and self.found(out) == self.expected


@pytest.mark.parametrize("names", [False, True], ids=["names are lost", "names are not"])
def test_a_loss_of_power_loses_nothing_that_was_saved(trial, names):
    assert trial.operations > 60
    for stop in np.linspace(0, trial.operations - 1, number(5, 9)).astype(int).tolist():
        assert trial.ends_well(stop, names=names), stop


@pytest.mark.parametrize("names", [False, True], ids=["names are lost", "names are not"])
def test_without_syncs_it_would(trial, names):
    """The control: the trial notices it."""
    stops = np.linspace(trial.operations // 2, trial.operations - 1, number(2, 4)).astype(int)
    assert not any(trial.ends_well(stop, names=names, sync=False) for stop in stops.tolist())


@pytest.mark.hard
@pytest.mark.parametrize("names", [False, True], ids=["names are lost", "names are not"])
def test_a_loss_of_power_at_every_operation_loses_nothing_that_was_saved(trial, names):
    bad = [stop for stop in range(trial.operations) if not trial.ends_well(stop, names=names)]
    print(f"power lost at {trial.operations} operations, {len(bad)} runs ended otherwise")
    assert not bad
