"""Several rankers as one: their rankings are fused by ranks, by scores, or by weights learned on dev."""

from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from rejoinder.arrays import read_shaped, write_arrays
from rejoinder.errors import UserError
from rejoinder.runs.selection import SelectionRun
from rejoinder.systems.ranking import draw_lists, first_lists
from rejoinder.systems.stacking import Stack, fuse_ranks, fuse_scores, learn_stack, scale_of, stack
from rejoinder.systems.system import Lesson, SelectionSystem
from rejoinder.tasks.selection import SelectionTask
from rejoinder.watch import Watch, unwatched

_WEIGHTS = "weights.npz"
_SOME = 100
"""Examples by which a member's scores are known to be shares of a whole, or not."""


class Ensemble(SelectionSystem):
    """Fuses the rankings of its members."""

    class Settings(msgspec.Struct, frozen=True):
        """Of what, and how."""

        members: tuple[str, ...]
        """Recipes, or folders of trained models."""
        method: Literal["ranks", "scores", "stack"] = "stack"

        def __post_init__(self) -> None:
            """Refuse to fuse nothing."""
            if not self.members:
                raise ValueError("members are none; expected one or more")

    learned: Stack
    """The scales of the members' scores, and what they weigh; nothing, unless they are stacked."""

    @property
    def says_none(self) -> bool:
        """Whether a member does."""
        return any(part.says_none for part in self.parts)

    def part_sources(self) -> tuple[str, ...]:
        """Return the members."""
        members: tuple[str, ...] = self.settings.members
        return members

    def check(self, lesson: Lesson[SelectionTask]) -> None:
        """Ask for dev where weights are learned."""
        if self.settings.method == "stack" and lesson.dev is None:
            raise UserError("stacking learns its weights on dev: name a task by --dev, or a recipe with method: ranks")

    def fit(self, lesson: Lesson[SelectionTask]) -> None:
        """Learn the weights on dev, which has taught members little: when to stop, or a few weights of their own."""
        if self.settings.method == "stack":
            assert lesson.dev is not None
            self.learned = learn_stack(self._runs(lesson.dev, lesson.watch), lesson.dev.truth().correct)
        elif self.settings.method == "scores":
            some = first_lists(lesson.dev or lesson.train, _SOME)
            runs = self._runs(draw_lists(some, lesson.seed), lesson.watch)
            self.learned = Stack(np.array([scale_of(run) for run in runs]), np.zeros(0))

    def predict(self, task: SelectionTask, watch: Watch = unwatched) -> SelectionRun:
        """Answer every example."""
        runs = self._runs(task, watch)
        notes = tuple(dict.fromkeys(note for run in runs for note in run.notes))
        return msgspec.structs.replace(self._fused(runs), notes=notes)

    def _fused(self, runs: list[SelectionRun]) -> SelectionRun:
        if self.settings.method == "ranks":
            return fuse_ranks(runs)
        if self.settings.method == "scores":
            return fuse_scores(runs, self.learned.scales.tolist())
        return stack(runs, self.learned)

    def _runs(self, task: SelectionTask, watch: Watch) -> list[SelectionRun]:
        return [self.ask(place, task, watch) for place in range(len(self.parts))]

    def save(self, folder: Path) -> None:
        """Write what was learned."""
        if self.settings.method != "ranks":
            write_arrays(folder / _WEIGHTS, self.learned._asdict())

    def load(self, folder: Path) -> None:
        """Read what was learned."""
        if self.settings.method != "ranks":
            members = len(self.settings.members)
            weights = 2 * members if self.settings.method == "stack" else 0
            self.learned = Stack(**read_shaped(folder / _WEIGHTS, {"scales": (members,), "weights": (weights,)}))
