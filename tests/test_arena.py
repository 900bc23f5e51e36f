"""Laws of declared fields, and of whatever declares them: maps, members, bandits."""

import json

import numpy as np
import pytest
import test_features as maps
import test_members as members

import driftline as dl
from driftline.features import Lags, Union
from driftline.features.base import Mapper
from driftline.state.arena import LARGEST, Field, Layout, grown_places

FIELDS = (
    Field("rows", least=0.0, whole=True),
    Field("counts", ("features", "classes"), fill=1.0, added=2.0),
    Field("kept", (3, "features"), least=-5.0, most=5.0),
)


def mapper_of(part):
    mapper, rows = part.mapper(), maps.table(0, 70)
    mapper.transform(rows, np.arange(70) % 3)
    return mapper


def rounds(task, seed=0):
    if task.kind in ("classes", "sign"):
        return members.stream(task, seed=seed)
    stream = dl.streams.Planted(task, rounds=60, features=4, flips=0, seed=seed)
    return stream.inputs, stream.labels


def member_of(member):
    one = member.copy()
    one.run(*rounds(one.task))
    return one


PARTS = [*maps.MAPS, Lags(2, classes=3), Union(Lags(4, classes=3), Lags(1, classes=2))]
QUADRATIC = dl.losses.FenchelYoung(dl.tasks.LabelRanking(5), dl.regularizers.Quadratic())
BANDITS = [dl.bandit.Bandit(members.TASK), dl.bandit.LossOnly(QUADRATIC)]
OWNERS = [pytest.param(mapper_of, part, id=repr(part)) for part in PARTS]
OWNERS += [pytest.param(member_of, one, id=repr(one)) for one in (*members.MEMBERS, *BANDITS)]
every_owner = pytest.mark.parametrize(("make", "what"), OWNERS)


def states(owner):
    """Yield the layout of each buffer, the buffer, and a function that restores it edited."""
    if not isinstance(owner, Mapper):
        state = owner.state
        layout = owner.layout(state.features, state.memory)
        yield layout, state.memory, lambda made: owner.restore(state.replaced(memory=made))
        return
    for mapper in owner.mappers:
        yield from states(mapper)
    about = owner.to_saved()[0]
    if not owner.mappers:
        yield owner.layout, owner.state, lambda made: owner.restore(about, {"state": made})


def saved(owner):
    about, arrays = owner.to_saved()
    return json.dumps(about, sort_keys=True), {name: a.tobytes() for name, a in arrays.items()}


@every_owner
def test_a_number_out_of_its_range_is_refused_by_the_name_of_its_field(make, what):
    owner = make(what)
    before = saved(owner)
    for layout, buffer, restore in states(owner):
        for field in layout.fields:
            bad = [np.nan, np.inf, -np.inf] + [0.5] * field.whole
            bad += [field.least - abs(field.least) - 1.0] * (field.least > -LARGEST)
            bad += [field.most * 2.0 + 1.0] * (field.most < LARGEST)
            for number in bad:
                edited = buffer.copy()
                getattr(layout.views(edited), field.name).flat[-1:] = number
                if np.array_equal(edited, buffer):
                    continue  # a field without entries
                with pytest.raises(dl.InputError) as refused:
                    restore(edited)
                of_tables = "tables of two" in str(refused.value)  # which fields others depend on
                assert of_tables or f"{field.name!r}" in str(refused.value)
                assert saved(owner) == before
        restore(buffer.copy())


@every_owner
def test_a_copy_goes_on_by_itself_with_the_same_bits(make, what):
    owner = make(what)
    copy, before = owner.copy(), saved(owner)
    assert saved(copy) == before
    for _, buffer, restore in states(copy):
        assert not any(np.shares_memory(buffer, other) for _, other, _ in states(owner))
        assert buffer.ctypes.data % 8 == 0
        restore(buffer.copy())
    if isinstance(owner, Mapper):
        copy.transform(maps.table(1, 30), np.arange(30) % 3)
        owner.transform(maps.table(1, 30), np.arange(30) % 3)
    else:
        for one in (copy, owner):
            one.run(*rounds(owner.task, seed=1))
    assert saved(copy) == saved(owner) and (saved(copy) != before or not buffer.size)


def test_fields_grow_by_their_axes_like_padded_arrays():
    layout = Layout(FIELDS, features=2, classes=3)
    buffer = layout.new()
    assert buffer.ctypes.data % 64 == 0 and layout.size == len(buffer) == 1 + 6 + 6
    old = layout.views(buffer)
    old.kept[:] = np.arange(6).reshape(3, 2)
    places = grown_places(2, 4, kept=1)
    assert places.tolist() == [0, -1, -1, 1]
    made = layout.grown(buffer, features=places, classes=grown_places(3, 4))
    new = layout.resized(features=4, classes=4).views(made)
    assert new.kept[:, [0, 3]].tolist() == old.kept.tolist() and not new.kept[:, 1:3].any()
    assert (new.counts[[0, 3]][:, :3] == 1.0).all() and (new.counts[1:3] == 2.0).all()
    assert (new.counts[:, 3] == 2.0).all()


@pytest.mark.parametrize(
    "other", [None, [0.0] * 13, np.zeros(12), np.zeros((1, 13)), np.arange(13)]
)
def test_what_is_no_buffer_is_refused(other):
    layout = Layout(FIELDS, features=2, classes=3)
    with pytest.raises(dl.InputError, match="vector of numbers|must be 13 finite numbers"):
        layout.check(other)
