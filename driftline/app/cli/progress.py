"""A progress bar with the running loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Progress"]


class Progress:
    """A bar on a terminal, nothing elsewhere."""

    def __init__(self, console: Console, quiet: bool = False):
        from rich import progress

        self._bar = progress.Progress(
            progress.BarColumn(bar_width=24),
            progress.TaskProgressColumn(),
            progress.TextColumn("{task.fields[rows]:,} rows"),
            progress.TextColumn("{task.fields[rate]}"),
            progress.TextColumn("loss {task.fields[loss]:.4f}"),
            progress.TextColumn("{task.fields[saved]}"),
            progress.TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None, rows=0, rate="", loss=0.0, saved="")

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(
        self, done: tuple[int, int | None], rows: int, loss: float, saved: int | None = None
    ) -> None:
        """Show how much was read, how many rows were learned from and saved, and the mean loss."""
        spent = self._bar.tasks[0].elapsed or 0.0
        rate = f"{rows / spent:,.0f}/s" if spent > 0.5 else ""
        self._bar.update(
            self._task,
            completed=done[0],
            total=done[1],
            rows=rows,
            rate=rate,
            loss=loss,
            saved=f"{saved:,} saved" if saved else "",
        )
