"""What compiled decoders need of a task whose predictions are vertices of a polytope."""

from __future__ import annotations

from driftline.tasks import Task

__all__ = ["VERTEX_HEADER", "finds_vertices", "vertex_params", "vertex_scratch"]

#: How many parameters there are before those of the polytope: see :func:`vertex_params`.
VERTEX_HEADER = 7


def finds_vertices(task: Task) -> bool:
    """Say whether compiled code can find the best vertex, and turn vertices into loss encodings."""
    known = task.kernels is not None and task.geometry.vertex_loss is not None
    return known and task.label_hull.maximize_kernel is not None


def vertex_params(task: Task, separation: float = 0.0, norm: float = 2.0) -> tuple[float, ...]:
    """Return factor and shift of loss encodings, an address, four numbers, and the polytope's.

    The address is that of the kernel that finds the best vertex; the numbers are the separation of
    vertices in a norm, which one that is, and those of `Geometry.part_size` and `pair_tags`.
    """
    hull = task.label_hull
    assert hull.maximize_kernel is not None and task.geometry.vertex_loss is not None
    address = float(hull.maximize_kernel.address)
    parts = (float(task.geometry.part_size), float(task.geometry.pair_tags))
    return (*task.geometry.vertex_loss, address, separation, norm, *parts, *hull.params)


def vertex_scratch(task: Task, size: int) -> int:
    """Return room for a vertex, in rounds of ``size`` scores, and for finding it."""
    hull = task.geometry.hull_at(size)
    return max(size, hull.dim) + hull.scratch
