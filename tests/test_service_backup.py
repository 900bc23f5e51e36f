"""Backups are taken while the service writes, and restored: a drill."""

import json
import threading

import pytest
from click.testing import CliRunner

import driftline as dl
from driftline.app.cli import main
from driftline.app.service.backup import back_up, restore
from driftline.app.service.clock import LogClock
from driftline.app.service.log import SqliteLog
from driftline.app.service.machine import Machine
from driftline.app.service.served import served_from
from driftline.app.service.server import load
from driftline.app.service.snapshots import SnapshotFolder
from driftline.app.service.writer import Limits
from driftline.state import archive
from tests.service import call, client, serving, within

COLUMNS = {"x": "number"}
NAMES = ("m", "n")


class Writing(threading.Thread):
    """Asks and tells until it is stopped."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.address, self.ending, self.count = address, threading.Event(), 0

    def run(self):
        with dl.Client(self.address) as own:
            while not self.ending.is_set():
                model, self.count = NAMES[self.count % 2], self.count + 1
                id = f"a{self.count}"
                own.predict(model, {"x": self.count % 7}, id=id)
                if self.count % 5:
                    own.label(model, id, "yes" if self.count % 2 else "no")


def states(folder):
    """Return the states of all models, by name, and the last record."""
    log = SqliteLog(folder / "log.sqlite3")
    machine = Machine(log, load, LogClock(log.last()[2]))
    machine.recover(SnapshotFolder(folder / "snapshots", log, served_from))
    assert not machine.quarantined
    made = {own.name: archive.packed(*own.to_saved()) for own in machine.models.values()}
    seq = machine.seq
    log.close()
    return made, seq


def contents(folder):
    names = [path for path in folder.rglob("*") if path.is_file() and path.name != "backup.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in names}


@pytest.fixture
def service(tmp_path):
    """A service that deletes old records and writes snapshots all the time."""
    limits = Limits(snapshot_seconds=0.05, keep_seconds=0.5)
    with serving(tmp_path / "data", limits=limits) as (address, server):
        for name in NAMES:
            client(address).create(name, "y", columns=COLUMNS, learner="fast")
        yield address, server, tmp_path


def test_twenty_backups_while_it_writes_are_restored_to_equal_bytes(service):
    address, server, folder = service
    known, lock = {}, threading.Lock()
    note = server.writer._publish

    def noted():  # after every group, in the writer's thread
        with lock:
            known[server.machine.seq] = {
                own.name: archive.packed(*own.to_saved()) for own in server.machine.models.values()
            }
        note()

    server.writer._publish = noted
    writing = Writing(address)
    writing.start()
    made, trimmed = [], set()
    for i in range(20):
        while writing.count < 15 * (i + 1):
            writing.ending.wait(0.01)
        server.writer._next_expiry = 0.0
        made.append(back_up(folder / "data", folder / f"backup {i}"))
        trimmed.add(server.log.trimmed)
    writing.ending.set()
    writing.join()
    assert len(trimmed) > 2  # records were deleted in between
    for i, content in enumerate(made):
        backup, target = folder / f"backup {i}", folder / f"restored {i}"
        assert restore(backup, target) == (content, [])
        assert contents(target) == contents(backup)
        own, seq = states(target)
        with lock:
            assert (own, content.seq) == (known[seq], seq)


def test_a_service_goes_on_with_a_backup(service):
    address, _, folder = service
    own = client(address)
    own.learn("m", [{"x": i} for i in range(20)], ["yes", "no"] * 10)
    own.predict("m", {"x": 3.0}, id="waits")
    run = CliRunner().invoke
    made = run(main, ["backup", str(folder / "data"), str(folder / "backup")])
    assert (made.exit_code, "of 2 models" in made.output) == (0, True)
    made = run(main, ["restore", str(folder / "backup"), str(folder / "again")])
    assert (made.exit_code, "driftline serve --data" in made.output) == (0, True)
    with serving(folder / "again") as (other, _):
        assert client(other).model("m")["counts"] == own.model("m")["counts"]
        assert client(other).label("m", "waits", "yes")["learned"]
    assert (folder / "again").stat().st_mode & 0o077 == 0


def test_two_backups_to_one_place_are_made_one_after_the_other(service):
    _, _, folder = service
    results = []

    def work():
        try:
            results.append(back_up(folder / "data", folder / "backup"))
        except dl.InputError as error:
            results.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refused = [own for own in results if isinstance(own, str)]
    assert len(refused) == 3 and all("there already" in own for own in refused)
    restore(folder / "backup", folder / "again")


def test_a_backup_with_a_flipped_bit_is_refused(service):
    address, server, folder = service
    client(address).learn("m", [{"x": i} for i in range(20)], ["yes", "no"] * 10)
    while not within(server, server.log.snapshots):
        pass
    back_up(folder / "data", folder / "backup")
    about = json.loads((folder / "backup" / "backup.json").read_text())
    assert len(about["files"]) > 1
    for name in about["files"]:
        path = folder / "backup" / name
        content = path.read_bytes()
        place = len(content) // 2
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(dl.InputError, match="not as it was"):
            restore(folder / "backup", folder / "again")
        assert not (folder / "again").exists() and not list(folder.glob(".part*"))
        path.write_bytes(content)
    restore(folder / "backup", folder / "again")


@pytest.mark.parametrize("about", ['{"files": {"../log.sqlite3": ""}}', "[]", "{", "9", "[[]]"])
def test_a_backup_that_says_nothing_of_itself_is_refused(tmp_path, about):
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / "backup.json").write_text(about)
    with pytest.raises(dl.InputError, match="cannot be read"):
        restore(tmp_path / "backup", tmp_path / "again")


@pytest.mark.parametrize(("format", "name"), [(1, "../a"), (1, "/a"), (9, "log.sqlite3"), (1, "a")])
def test_a_backup_names_its_own_files_only(tmp_path, format, name):
    about = {"format": format, "files": {name: ""}}
    about["content"] = {"records": 1, "seq": 1, "models": 1}
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / "backup.json").write_text(json.dumps(about))
    with pytest.raises(dl.InputError, match="another version, or names other files"):
        restore(tmp_path / "backup", tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_folders_that_are_none_are_refused(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(dl.InputError, match="no folder of a service"):
        back_up(tmp_path / "a", tmp_path / "b")
    with pytest.raises(dl.InputError, match="is no backup"):
        restore(tmp_path / "a", tmp_path / "b")
    with serving(tmp_path / "data"):
        (tmp_path / "a" / "file").write_text("")
        with pytest.raises(dl.InputError, match="there already"):
            back_up(tmp_path / "data", tmp_path / "a")


def test_one_damaged_model_is_named_and_the_others_serve(service, capfd):
    address, server, folder = service
    own = client(address)
    for name in NAMES:
        own.learn(name, [{"x": i} for i in range(20)], ["yes", "no"] * 10)
    number = server.machine.names["m"]
    while not server.log.trimmed > number:
        server.writer._next_expiry = 0.0
        own.predict("n", {"x": 1.0})
    back_up(folder / "data", folder / "backup")
    known = json.loads((folder / "backup" / "backup.json").read_text())["files"]
    restore(folder / "backup", folder / "again")
    for name in known:
        if name.startswith(f"snapshots/model-{number}-"):
            path = folder / "again" / name
            path.write_bytes(path.read_bytes()[:-10])
    with serving(folder / "again") as (other, _):
        states = {own["name"]: own for own in client(other).models()}
        assert "no snapshot of it can be read" in states["m"]["quarantined"]
        assert client(other).predict("n", {"x": 1.0})["prediction"]
        status, said = call(other, "POST", "/models/m/predict", {"row": {"x": 1.0}})
        assert (status, "out of service" in said["error"]) == (503, True)
        text = call(other, "GET", "/metrics")[1].decode()
        assert 'driftline_quarantined{model="m"} 1.0' in text
        assert "model 'm' is out of service" in capfd.readouterr().err
        assert call(other, "DELETE", "/models/m")[0] == 200
        client(other).create("m", "y", columns=COLUMNS, learner="fast")
        client(other).learn("m", {"x": 1.0}, "yes")
    with serving(folder / "again") as (other, _):
        assert client(other).model("m")["counts"]["learned"] == 1


@pytest.mark.parametrize("lost", [1, 2])
def test_a_folder_with_lost_snapshots_is_backed_up(service, lost):
    """Of a model without the newer one the older is left; without both it is out of service."""
    address, server, folder = service
    own = client(address)
    for name in NAMES:
        own.learn(name, [{"x": i} for i in range(20)], ["yes", "no"] * 10)
    number = server.machine.names["m"]
    while not server.log.trimmed > number:
        server.writer._next_expiry = 0.0
        own.predict("n", {"x": 1.0})
    back_up(folder / "data", folder / "backup")
    restore(folder / "backup", folder / "damaged")
    files = sorted((folder / "damaged" / "snapshots").glob(f"model-{number}-*"))
    assert len(files) == 2
    for path in files[-lost:]:
        path.unlink()
    content = back_up(folder / "damaged", folder / "again")
    assert len(list((folder / "again" / "snapshots").iterdir())) == 4 - lost
    made, found = restore(folder / "again", folder / "restored")
    assert made == content
    assert ["no snapshot of it can be read" in said for said in found] == [True] * (lost - 1)
