"""Laws of the race: streams that change, fair comparisons, a cache that is never stale."""

import math

import numpy as np
import pytest

from benchmarks.race.board import Board
from benchmarks.race.cache import Cache
from benchmarks.race.contest import Contestant, Played, Run, log_loss, play
from benchmarks.race.page import left_out
from benchmarks.race.peers import PEERS, everybody
from benchmarks.race.play import Job
from benchmarks.race.report import said, standings
from benchmarks.race.river_streams import POSITION, ROUNDS, WIDTHS, mixed
from benchmarks.race.streams import CHOOSING_SEEDS, FIRST_SEED, FIXED, Rows

SEEDS = [FIRST_SEED, FIRST_SEED + 1]


def concept(label):
    """Return rows that are numbered, all of one label."""
    return np.arange(ROUNDS, dtype=np.float64)[:, np.newaxis], np.full(ROUNDS, label)


@pytest.mark.parametrize("width", WIDTHS.values())
def test_a_change_takes_the_rows_of_both_concepts_in_order_and_none_twice(width):
    inputs, labels = mixed(concept(0), concept(1), width, seed=3)
    for label in (0, 1):
        own = inputs[labels == label, 0]
        assert np.array_equal(own, np.arange(len(own)))
    assert labels[: POSITION - 3 * width].mean() < 0.01
    assert labels[POSITION + 3 * width :].mean() > 0.99


def test_an_abrupt_change_is_over_within_a_few_rows():
    _, labels = mixed(concept(0), concept(1), WIDTHS["abrupt"], seed=3)
    assert not labels[: POSITION - 10].any()
    assert labels[POSITION + 10 :].all()


def test_seeds_to_choose_on_are_not_reported():
    assert max(CHOOSING_SEEDS) < FIRST_SEED


def test_the_logarithmic_loss_of_equal_chances_is_that_of_guessing():
    assert log_loss(np.full((5, 4), 0.25), np.arange(5) % 4) == pytest.approx(math.log(4))


def test_a_chance_of_zero_or_none_costs_much_but_not_everything():
    chances = np.array([[1.0, 0.0], [np.nan, 1.0]])
    loss = log_loss(chances, np.array([1, 0]))
    assert loss == pytest.approx(-math.log(0.0005))


def test_peers_have_names_of_their_own_and_one_default_a_family():
    peers = [one for one in everybody().values() if one.group in PEERS]
    assert len({one.name for one in peers}) == len(peers)
    defaults = [(one.group, one.family) for one in peers if one.default]
    assert sorted(defaults) == sorted({(one.group, one.family) for one in peers})


def run(name, seed, mistakes, stream="digits 10", **more):
    return Run(name, stream, seed, 1000, [mistakes // 2, mistakes], 1.0, **more)


def test_contestants_are_compared_on_seeds_that_both_played():
    board = Board([run("auto", 100, 10), run("auto", 101, 90), run("ARF 10", 100, 12)])
    match = board.mistakes("ARF 10", "digits 10")
    assert (match.theirs, match.ours, match.seeds) == (12, 10, 1)


def test_contestants_are_compared_on_rows_that_both_played():
    short = Run("ARF 10", "digits 10", 100, 500, [7], 1.0)
    match = Board([run("auto", 100, 10), short]).mistakes("ARF 10", "digits 10")
    assert (match.theirs, match.ours, match.rounds) == (7, 5, 500)


def test_logarithmic_losses_of_a_part_of_the_rows_are_not_compared():
    whole = run("auto, row by row", 100, 10, log_loss=0.2)
    short = Run("ARF 10", "digits 10", 100, 500, [7], 1.0, log_loss=0.1)
    runs = [run("auto", 100, 10), whole, short, run("GaussianNB", 100, 30, log_loss=0.4)]
    board = Board(runs)
    assert board.log_losses("ARF 10", "digits 10") is None
    assert board.log_losses("GaussianNB", "digits 10").ratio == pytest.approx(2.0)


def test_as_many_mistakes_as_the_best_peer_count_as_at_or_below():
    runs = [run("auto", 100, 10), run("ARF 10", 100, 10), run("KNN last 100", 100, 8)]
    row = standings(Board(runs), ["digits 10"]).sections[0][-1]
    assert row == ["auto", "all", "1 of 1", "1.00 (digits 10)", "1.00"] + [
        "0 of 1",
        "1.25 (digits 10)",
        "1.25",
    ]


def test_slow_peers_play_fewer_seeds_but_all_rows():
    slow = Contestant("river", "slow", "", None, cost="slowest")
    assert slow.budget("digits 10", SEEDS, full=False) == (10**9, SEEDS[:1])
    assert slow.budget("digits 10", SEEDS, full=True) == (10**9, SEEDS)
    assert slow.budget("mnist 10", SEEDS, full=False) == (2000, SEEDS[:1])
    light = Contestant("ours", "light", "", None)
    assert [light.budget(name, SEEDS, full=False)[1] for name in FIXED] == [SEEDS[:1]] * len(FIXED)


ROWS = Rows(np.zeros((4, 2)), np.array([0, 1, 1, 0]), 2, np.ones((4, 2)))


def test_a_run_has_mistakes_and_a_loss_if_there_are_probabilities():
    chances = np.full((4, 2), 0.5)
    sure = Contestant("river", "a", "", lambda rows, seed: Played([0, 0, 1, 0], 2.0, chances))
    found = play(sure, "digits 10", 100, ROWS)
    assert (found.mistakes, found.rate) == (1, 2.0)
    assert found.log_loss == pytest.approx(math.log(2))
    plain = Contestant("river", "b", "", lambda rows, seed: Played([0, 1, 1, 0], 2.0))
    assert play(plain, "digits 10", 100, ROWS).log_loss is None


def test_a_cache_returns_what_was_kept_and_nothing_that_raised(tmp_path):
    one, cache = everybody()["ARF 10"], Cache(tmp_path / "runs.json")
    key = Cache.key(one, "digits 10", 100, 4, ROWS.checksum(one.raw))
    cache.put("raised", run("ARF 10", 100, 3, error="ValueError: no"))
    cache.put(key, run("ARF 10", 100, 3, log_loss=0.5))
    cache.write()
    again = Cache(tmp_path / "runs.json")
    assert again.get(key) == run("ARF 10", 100, 3, log_loss=0.5)
    assert again.get("raised") is None


def test_peers_of_raw_rows_play_again_if_these_change_and_only_then():
    scaled = ROWS._replace(inputs=ROWS.inputs + 1.0)
    raw = ROWS._replace(raw=ROWS.raw + 1.0)
    labels = ROWS._replace(labels=1 - ROWS.labels)
    assert scaled.checksum(raw=True) == ROWS.checksum(raw=True) != raw.checksum(raw=True)
    assert raw.checksum(raw=False) == ROWS.checksum(raw=False) != scaled.checksum(raw=False)
    assert labels.checksum(raw=True) != ROWS.checksum(raw=True)


def test_slow_runs_of_ours_are_kept_as_long_as_the_source_stays(monkeypatch):
    slow = everybody()["auto, row by row"]
    assert slow.kept and not everybody()["auto"].kept and everybody()["last label"].kept
    before = Cache.key(slow, "digits 10", 100, 4, 1)
    monkeypatch.setattr("benchmarks.race.contest._source", lambda: "other")
    assert Cache.key(slow, "digits 10", 100, 4, 1) != before


def test_seeds_are_said_in_few_words():
    assert said([100]) == "100"
    assert said([100, 101, 102]) == "100 to 102"


def test_a_peer_that_has_not_played_is_named_with_its_streams():
    left = [Job("ARF 10", s, 100, 10) for s in ("b", "a")] + [Job("GaussianNB", "a", 100, 10)]
    text = left_out([*left, Job("KNN", "a", 100, 10), Job("KNN", "b", 100, 10)])
    assert "- river ARF 10; river KNN: a, b." in text and "- river GaussianNB: a." in text
    assert left_out([]) == ""
