"""Learners of any kind by slot, kept as images of their states.

An image is what :class:`~driftline.state.Leaves` reads: arrays and plain values. Some learners are
*live*: those of the slots that were used last. A step of a live learner is not followed by a new
image but by an entry of a journal, which is played again where the learner itself is lost, as by an
exception. So the state of a live slot is there twice, and a step of a live learner costs little
more than a step without keys.
Other images are packed: the bytes of all arrays in pages, without those that are the same in the
first image of these shapes, as most are of a learner that has seen a few rows.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from driftline.committee import Committee
from driftline.engines import CompiledEngine
from driftline.errors import DAMAGE, InputError, TornError
from driftline.inputs import Rows
from driftline.keyed.store import Store
from driftline.learner import OGD, Learner
from driftline.learner.outstanding import Outstanding
from driftline.state.stateful import Leaves
from driftline.typing import Json, Saved

__all__ = ["Images", "fits_shared"]

#: About how many bytes live learners have, how many learners at least and at most are live, how
#: many rows a journal has, and how many words of 8 bytes a page.
ROOM, FEWEST, MOST, ROWS, PAGE = 1 << 27, 8, 256, 32, 8

#: The types of values that are plain data.
PLAIN = (type(None), bool, int, float, str, tuple)

#: The version of the fields in a file.
VERSION = 1

#: The shape and type of every array among the leaves, None in the place of another value.
Shapes: TypeAlias = tuple[tuple[tuple[int, ...], str] | None, ...]


class Image(NamedTuple):
    """The leaves of a learner, with what a committee is beside them.

    ``seats`` are the places of the members that are left in, and ``met`` is what is known of rows.
    ``journal`` are the rows and labels that the learner has learned from since: an image and its
    journal are one value, so that nobody ever sees one without the other.
    """

    seats: tuple[int, ...] | None
    met: Any
    values: list[Any]
    journal: list[tuple[Any, Any]]

    @classmethod
    def of(cls, live: Live) -> Image:
        """Return the image of a learner."""
        return cls(live.seats, live.learner._met, live.leaves.read(), [])


@dataclass(eq=False)
class Layout:
    """What some images have in common; they are packed as differences from the first of them."""

    seats: tuple[int, ...] | None
    shapes: Shapes
    plain: tuple[Any, ...]
    pages: np.ndarray


class Packed(NamedTuple):
    """An image: values that are no arrays, and pages of the bytes of arrays.

    Pages are differences (exclusive or) from those of the layout, without pages of zeros.
    """

    layout: Layout
    met: Any
    plain: tuple[Any, ...]
    places: np.ndarray
    pages: np.ndarray
    journal: list[tuple[Any, Any]]


class Live(NamedTuple):
    """A learner that has the place of a slot."""

    learner: Any
    leaves: Leaves
    seats: tuple[int, ...] | None

    @classmethod
    def of(cls, learner: Any) -> Live:
        """Return a learner with its leaves as they are now."""
        return cls(learner, Leaves(learner), getattr(learner, "_seats", None))


def fits_shared(learner: Learner) -> bool:
    """Say whether learners of this kind can begin as another one is: all are weights and scales.

    So are committees of compiled OGD that draw nothing, without maps but for a scaling.
    """
    if not isinstance(learner, Committee) or learner.guard or learner.task.layout.ragged:
        return False
    return all(
        isinstance(member, OGD)
        and isinstance(member.engine, CompiledEngine)
        and (member.mapper is None or member._standardiser is not None)
        and member.decoder.deterministic
        for member in learner.members
    )


class Images(Store):
    """Learners by slot. A slot without an image has a new one.

    With ``shares`` there is a committee over all rows; new ones begin with its weights of all kinds
    and its scaling, but have played no round yet, and their sets of weights count alike.
    """

    def __init__(
        self, worker: Any, first: Any, seed_of: Callable[[int], int], shares: bool = False
    ):
        super().__init__(worker, first, seed_of)
        blank = {"tickets": 0, "outstanding": None, "identity": "", "late": None}
        made = worker.copy()
        made.restore(self.first.replaced(**blank))
        self._new = Live.of(made)
        self._start = Image.of(self._new)
        #: The learner over all rows, None if there is none.
        self.shared: Any = made.copy() if shares else None
        self._kept: dict[int, Image | Packed] = {}
        self._live: OrderedDict[int, Live] = OrderedDict()
        #: Learners that are nobody's, by their seats: no member changes seats once it has learned.
        self._spare: dict[tuple[int, ...] | None, list[Live]] = {}
        self._now, self._loose, self._most = self._new, False, FEWEST
        #: Slots that came from a file, and that nobody has looked at yet.
        self._unchecked: set[int] = set()
        self._layouts: dict[tuple[Any, Shapes], Layout] = {}

    # -- one learner

    def enter(self, slot: int, *, asking: bool = True) -> Any:
        """Return the learner of a slot."""
        if (live := self._live.get(slot)) is None:
            if (kept := self._kept.get(slot)) is None:
                return self.fresh(self._seed_of(slot))
            if slot in self._unchecked:
                live = self._checked(slot, kept)
            else:
                live = self._written(kept, self._seed_of(slot))
            for x, label in kept.journal:
                live.learner.learn_row(x, label)
            self._live[slot] = live
        self._live.move_to_end(slot)
        self._now, self._loose = live, False
        self._trim()
        return live.learner

    def leave(self, slot: int, told: tuple[Any, Any] | None = None) -> None:
        """Keep the learner that was entered last, or that is fresh, as that of a slot.

        If all that it has done is to learn from a row, ``told`` has this and its label.
        """
        live = self._now
        if live.seats != getattr(live.learner, "_seats", None):  # left out by first rows
            live = Live.of(live.learner)
        elif told is not None and live is self._live.get(slot):
            journal = self._kept[slot].journal
            if len(journal) < ROWS:
                journal.append(told)
                return
        self._live[slot], self._now, self._loose = live, live, False
        self._kept[slot] = Image.of(live)
        self._most = min(max(ROOM // (3 * live.leaves.bytes), FEWEST), MOST)
        self._trim()

    def _trim(self) -> None:
        """Let those that were used longest ago be live no more."""
        while len(self._live) > self._most:
            old, gone = self._live.popitem(last=False)
            kept = self._kept[old]
            self._kept[old] = self._packed(Image.of(gone) if kept.journal else kept)
            self._give(gone)

    def fresh(self, seed: int) -> Any:
        """Return a new learner with this seed."""
        live = self._written(self._start, seed)
        if self.shared is not None:
            live.learner._begin_as(self.shared)
        self._now, self._loose = live, True
        return live.learner

    def _idle(self, seats: tuple[int, ...] | None) -> Live:
        """Return a learner that is nobody's, with members in these seats."""
        now, loose = self._now, self._loose
        self._now, self._loose = self._new, False  # first, so that nobody is spare twice
        if loose:
            self._give(now)
        if spare := self._spare.get(seats):
            return spare.pop()
        learner = self._new.learner.copy()
        if seats != self._new.seats:
            learner._seats = seats
        return Live.of(learner)

    def _give(self, live: Live) -> None:
        """Keep a learner that is nobody's any more."""
        if live.seats == getattr(live.learner, "_seats", None):
            self._spare.setdefault(live.seats, []).append(live)

    def put(self, slot: int, state: Any) -> None:
        """Let a learner go on from a state, if it can be one of such a learner."""
        learner = self.fresh(self._seed_of(slot))
        learner.restore(state)
        live = Live.of(learner)
        self._now = self._into(live, Image.of(live), self._seed_of(slot))
        self.leave(slot)

    def _written(self, kept: Image | Packed, seed: int) -> Live:
        """Return a learner with the state of an image and a seed."""
        image = self._unpacked(kept)
        return self._into(self._idle(image.seats), image, seed)

    def _into(self, live: Live, image: Image, seed: int) -> Live:
        """Write the state of an image, and a seed, to a learner with members in the same seats."""
        live.learner._reseed(seed)
        live.leaves.write(image.values)
        live.learner._met = image.met
        return live

    def _checked(self, slot: int, kept: Image | Packed) -> Live:
        """Return a learner as one understands the state of another, which came from a file."""
        made = self._new.learner.copy()
        made._reseed(self._seed_of(slot))
        try:
            made.restore(self._written(kept, self._seed_of(slot)).learner.state)
        except (*DAMAGE, InputError, TornError) as error:
            raise InputError(f"learner {slot} of the file cannot be: {error}") from error
        self._unchecked.discard(slot)
        return Live.of(made)

    # -- packed images

    def _packed(self, kept: Image | Packed) -> Packed:
        if isinstance(kept, Packed):
            return kept
        values = kept.values
        arrays = [own for own in values if type(own) is np.ndarray]
        parts = [np.ascontiguousarray(own).reshape(-1).view(np.uint8) for own in arrays]
        rest = -sum(map(len, parts)) % (8 * PAGE)
        pages = np.concatenate([*parts, np.zeros(rest, np.uint8)]).view(np.int64).reshape(-1, PAGE)
        shapes: Shapes = tuple(
            (own.shape, own.dtype.str) if type(own) is np.ndarray else None for own in values
        )
        plain = tuple(own for own in values if type(own) is not np.ndarray)
        layout = self._layouts.get((kept.seats, shapes))
        if layout is None:
            layout = Layout(kept.seats, shapes, plain, pages.copy())
            self._layouts[kept.seats, shapes] = layout
        pages ^= layout.pages
        places = np.flatnonzero(np.bitwise_or.reduce(pages, axis=1))
        return Packed(layout, kept.met, plain, places.astype(np.int32), pages[places], [])

    def _unpacked(self, kept: Image | Packed) -> Image:
        if isinstance(kept, Image):
            return kept
        layout, pages, start = kept.layout, kept.layout.pages.copy(), 0
        pages[kept.places] ^= kept.pages
        numbers, plain, values = pages.reshape(-1).view(np.uint8), iter(kept.plain), list[Any]()
        for own in layout.shapes:
            if own is None:
                values.append(next(plain))
            else:
                stop = start + _bytes(own)
                values.append(numbers[start:stop].view(own[1]).reshape(own[0]))
                start = stop
        return Image(layout.seats, kept.met, values, [])

    # -- the learner over all rows

    def shared_state(self) -> Any:
        """Return the state of the committee over all rows."""
        return None if self.shared is None else self.shared.state

    def put_shared(self, state: Any) -> None:
        """Let the committee over all rows go on from a state."""
        self.shared.restore(state)

    def teach_shared(self, x: Any, label: Any) -> None:
        """Let the committee over all rows learn from one."""
        self.shared.learn_row(x, label)

    # -- many slots

    def meet(self, rows: Rows) -> None:
        """Do nothing: learners refuse rows themselves."""

    def grow(self, size: int) -> None:
        """Do nothing: there is room."""

    def begin(self, slots: np.ndarray) -> None:
        """Let new learners begin, as the shared one is now."""
        if self.shared is not None:
            for slot in slots.tolist():
                self.fresh(self._seed_of(slot))
                self.leave(slot)

    def drop(self, slots: np.ndarray) -> None:
        """Forget slots."""
        for slot in slots.tolist():
            self._kept.pop(slot, None)
            self._unchecked.discard(slot)
            if (live := self._live.pop(slot, None)) is not None and live is not self._now:
                self._give(live)

    def copy(self, slots: np.ndarray) -> dict[int, Any]:
        """Return images of some slots, which nobody changes, and how long their journals are."""
        pairs = ((slot, self._kept.get(slot)) for slot in slots.tolist())
        return {slot: (own, len(own.journal)) for slot, own in pairs if own is not None}

    def rollback(self, slots: np.ndarray, copied: dict[int, Any]) -> None:
        """Write back what :meth:`copy` returned."""
        for slot, (kept, entries) in copied.items():
            del kept.journal[entries:]
            self._kept[slot] = kept

    def reset(self) -> None:
        """Let no learner be live, after an exception: images are as they were before."""
        self._live.clear()
        self._spare.clear()
        self._now, self._loose = self._new, False

    # -- files

    def to_saved(self, slots: np.ndarray) -> Saved:
        """Return packed images, and the layouts from which these differ."""
        layouts: dict[int, int] = {}
        about: Json = {"version": VERSION, "layouts": [], "slots": []}
        nothing = np.zeros((0, PAGE), np.int64)
        places, pages, first = [np.zeros(0, np.int64)], [nothing], [nothing]
        for own in self._all_packed(slots):
            if own is None:
                about["slots"].append(None)
                continue
            layout = own.layout
            if (number := layouts.setdefault(id(layout), len(layouts))) == len(first) - 1:
                shapes = [None if one is None else [list(one[0]), one[1]] for one in layout.shapes]
                plain = list(map(_to_plain, layout.plain))
                about["layouts"].append({"seats": layout.seats, "shapes": shapes, "plain": plain})
                first.append(layout.pages)
            pairs = enumerate(zip(own.plain, layout.plain, strict=True))
            differ = [[i, _to_plain(one)] for i, (one, known) in pairs if not _same(one, known)]
            about["slots"].append([number, len(own.places), differ])
            places.append(own.places)
            pages.append(own.pages)
        arrays = {"places": np.concatenate(places).astype(np.int64), "pages": np.concatenate(pages)}
        return about, arrays | {"first": np.concatenate(first)}

    def _all_packed(self, slots: np.ndarray) -> list[Packed | None]:
        """Return packed images, as differences from the first of these slots in each layout."""
        known: dict[tuple[Any, Shapes], Layout] = {}
        made: list[Packed | None] = []
        for slot in slots.tolist():
            if (kept := self._kept.get(slot)) is None:
                made.append(None)
                continue
            if kept.journal:
                self.enter(slot)
                self.leave(slot)
                kept = self._kept[slot]
            own = self._packed(kept)
            like = own.layout.seats, own.layout.shapes
            layout = known.get(like)
            if layout is None:
                layout = own.layout
                if len(own.places) or own.plain != layout.plain:
                    whole = layout.pages.copy()
                    whole[own.places] ^= own.pages
                    layout = Layout(layout.seats, layout.shapes, own.plain, whole)
                known[like] = layout
            if layout is not own.layout:
                change = own.layout.pages ^ layout.pages
                change[own.places] ^= own.pages
                places = np.flatnonzero(np.bitwise_or.reduce(change, axis=1))
                places = places.astype(np.int32)
                own = own._replace(layout=layout, places=places, pages=change[places])
                if type(kept) is Packed:
                    self._kept[slot] = own
            made.append(own)
        self._layouts |= known
        return made

    def load(self, slots: np.ndarray, about: Json, arrays: Mapping[str, np.ndarray]) -> None:
        """Write images to slots; each learner is checked before it is first used."""
        places, pages, first = (arrays[name] for name in ("places", "pages", "first"))
        if about.get("version") != VERSION or len(about["slots"]) != len(slots):
            raise InputError("there is not one state for every key")
        good = [own.dtype == np.int64 and own.shape[1:] == (PAGE,) for own in (pages, first)]
        if not all(good) or places.dtype != np.int64 or places.shape != (len(pages),):
            raise InputError("expected pages of words, and their places")
        layouts, start = list[Layout](), 0
        for own in about["layouts"]:
            layouts.append(_layout(own, first[start:]))
            start += len(layouts[-1].pages)
        kept, used = list[Packed | None](), 0
        for own in about["slots"]:
            if own is None:
                kept.append(None)
                continue
            number, count, differ = own
            layout, part = layouts[number], slice(used, used + count)
            inside = np.r_[-1, places[part], len(layout.pages)]
            if type(count) is not int or count < 0 or (np.diff(inside) < 1).any():
                raise InputError(f"pages of a state cannot be {places[part]!r:.60}")
            plain = list(layout.plain)
            for place, value in differ:
                plain[place] = _from_plain(value)
            own_places = places[part].astype(np.int32)
            kept.append(Packed(layout, None, tuple(plain), own_places, pages[part], []))
            used += count
        if start != len(first) or used != len(pages):
            raise InputError(f"states have {start} and {used} pages: not {len(first), len(pages)}")
        self._layouts = {(own.seats, own.shapes): own for own in layouts}
        pairs = zip(slots.tolist(), kept, strict=True)
        self._kept = {slot: own for slot, own in pairs if own is not None}
        self._unchecked = {*self._kept}
        for slot in slots[:1].tolist():
            self.enter(slot)


def _bytes(shape: tuple[tuple[int, ...], str] | None) -> int:
    """Return how many bytes an array has; 0 in the place of another value."""
    return 0 if shape is None else np.dtype(shape[1]).itemsize * math.prod(shape[0])


def _same(one: Any, other: Any) -> bool:
    """Say whether plain values are equal."""
    return type(one) is type(other) and type(one) in PLAIN and one == other


def _to_plain(value: Any) -> Any:
    """Return a value as plain data."""
    if isinstance(value, Outstanding):
        return {"tickets": value.to_array().tolist()}
    if isinstance(value, dict):
        return {"reserves": [list(pair) for pair in value.items()]}
    if type(value) not in PLAIN:
        raise InputError(
            f"learners by key with {value!r:.80} cannot be saved: it lives in memory alone"
        )
    return {"values": list(value)} if type(value) is tuple else value


def _from_plain(value: Any) -> Any:
    """Return a value from what :func:`_to_plain` returned."""
    if not isinstance(value, Mapping):
        return value
    ((kind, own),) = value.items()
    if kind == "tickets":
        return Outstanding(np.array(own, dtype=np.int64))
    if kind == "values":
        return tuple(own)
    return {int(number): float(reserve) for number, reserve in own}


def _layout(given: Json, pages: np.ndarray) -> Layout:
    """Return a layout from a file; its pages are the first of these."""
    seats = None if given["seats"] is None else tuple(map(int, given["seats"]))
    shapes: list[Any] = []
    for own in given["shapes"]:
        if own is None:
            shapes.append(None)
            continue
        shape, kind = tuple(map(int, own[0])), str(own[1])
        if kind not in ("<f8", "<f4", "<i8") or min(shape, default=0) < 0:
            raise InputError(f"an array of a state cannot be {own!r:.60}")
        shapes.append((shape, kind))
    count = -(-sum(map(_bytes, shapes)) // (8 * PAGE))
    if shapes.count(None) != len(given["plain"]) or count > len(pages):
        raise InputError(f"a state cannot have arrays of the shapes {shapes!r:.80}")
    return Layout(seats, tuple(shapes), tuple(map(_from_plain, given["plain"])), pages[:count])
