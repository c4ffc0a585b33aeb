"""Several rankers as one: their rankings are fused by ranks, by scores, or by weights learned on dev."""

from pathlib import Path
from typing import Literal

import msgspec

from rejoinder.arrays import read_shaped, write_arrays
from rejoinder.errors import UserError
from rejoinder.runs.selection import SelectionRun
from rejoinder.systems.stacking import Stack, fuse_ranks, fuse_scores, learn_stack, stack
from rejoinder.systems.system import Lesson, SelectionSystem
from rejoinder.tasks.selection import SelectionTask
from rejoinder.watch import Watch, unwatched

_WEIGHTS = "weights.npz"


class Ensemble(SelectionSystem):
    """Fuses the rankings of its members."""

    class Settings(msgspec.Struct, frozen=True):
        """Of what, and how."""

        members: tuple[str, ...]
        """Recipes, or folders of trained models."""
        method: Literal["ranks", "scores", "stack"] = "stack"

    learned: Stack | None = None

    @property
    def says_none(self) -> bool:
        """Whether a member does."""
        return any(part.says_none for part in self.parts)

    def part_sources(self) -> tuple[str, ...]:
        """Return the members."""
        members: tuple[str, ...] = self.settings.members
        if not members:
            raise UserError("an ensemble needs members")
        return members

    def check(self, lesson: Lesson[SelectionTask]) -> None:
        """Ask for dev where weights are learned."""
        if self.settings.method == "stack" and lesson.dev is None:
            raise UserError("stacking learns its weights on dev: name a task by --dev, or take method: ranks")

    def fit(self, lesson: Lesson[SelectionTask]) -> None:
        """Learn the weights on dev, which no member has learned from."""
        if self.settings.method != "stack":
            return
        assert lesson.dev is not None
        self.learned = learn_stack(self._runs(lesson.dev, lesson.watch), lesson.dev.truth().correct)

    def predict(self, task: SelectionTask, watch: Watch = unwatched) -> SelectionRun:
        """Answer every example."""
        runs = self._runs(task, watch)
        if self.learned is not None:
            return stack(runs, self.learned)
        return fuse_ranks(runs) if self.settings.method == "ranks" else fuse_scores(runs)

    def _runs(self, task: SelectionTask, watch: Watch) -> list[SelectionRun]:
        return [part.predict(task, watch) for part in self.parts]

    def save(self, folder: Path) -> None:
        """Write what was learned."""
        if self.learned is not None:
            write_arrays(folder / _WEIGHTS, self.learned._asdict())

    def load(self, folder: Path) -> None:
        """Read what was learned."""
        if self.settings.method == "stack":
            members = len(self.settings.members)
            self.learned = Stack(**read_shaped(folder / _WEIGHTS, {"scales": (members,), "weights": (2 * members,)}))
