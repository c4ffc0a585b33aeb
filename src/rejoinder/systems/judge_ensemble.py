"""Several judges as one: the weighted mean of their distributions."""

import msgspec
import numpy as np

from rejoinder.errors import UserError
from rejoinder.runs.judgement import JudgementRun
from rejoinder.systems.system import JudgementSystem
from rejoinder.tasks.judgement import JudgementTask
from rejoinder.watch import Watch, unwatched


class JudgeEnsemble(JudgementSystem):
    """Averages what its members say."""

    class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        """Of what, and how much each counts."""

        members: tuple[str, ...]
        """Recipes, or folders of trained models."""
        weights: tuple[float, ...] = ()
        """One for each member; none: all count the same."""

    def part_sources(self) -> tuple[str, ...]:
        """Return the members."""
        members: tuple[str, ...] = self.settings.members
        weights = self.settings.weights or (1.0,) * len(members)
        if not members or len(weights) != len(members) or min(weights) < 0 or not sum(weights):
            raise UserError("an ensemble needs members, and as many weights, none of them negative and not all 0")
        return members

    def predict(self, task: JudgementTask, watch: Watch = unwatched) -> JudgementRun:
        """Judge every dialogue; questions that not all members answer stay without an answer."""
        runs = [part.predict(task, watch).distributions for part in self.parts]
        names = [name for name in runs[0] if all(name in run for run in runs)]
        weights = self.settings.weights or (1.0,) * len(runs)
        means = {name: np.average([run[name] for run in runs], axis=0, weights=weights) for name in names}
        return JudgementRun("ensemble", means)
