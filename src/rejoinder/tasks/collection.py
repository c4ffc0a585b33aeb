"""Build whole collections: every subtask and split of a data set, knowledge, and a description of what was built."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from rejoinder.corpora.advising import AdvisingRecord
from rejoinder.corpora.ubuntu import FILTERS, Funnel
from rejoinder.tasks import advising, ubuntu
from rejoinder.tasks.build import Cut, build_task, similar_by_words
from rejoinder.tasks.card import Card, write_card
from rejoinder.tasks.description import Diversity, Overlap, describe, overlap, write_description
from rejoinder.tasks.knowledge import write_knowledge
from rejoinder.tasks.selection import PROFILE_SCHEMA, SelectionTask
from rejoinder.tasks.ubuntu_corpus import write_test, write_training_pairs
from rejoinder.tasks.ubuntu_logs import Gathered
from rejoinder.watch import Step


class Description(msgspec.Struct, omit_defaults=True):
    """What was built, out of what, and what was left out."""

    dataset: str
    diversity: Diversity
    tasks: dict[str, int]
    """Examples by subtask and split."""
    overlaps: dict[str, Overlap]
    """Replies of dev and test that train has too."""
    funnel: dict[str, int] = {}
    notes: list[str] = []


def save_task(out: Path, card: Card, task: SelectionTask) -> None:
    """Write one task of a collection."""
    folder = out / f"subtask_{card.subtask}" / card.split
    card.examples, card.options = task.examples.height, task.options.height
    task.save(folder)
    write_card(folder, card)


def write_ubuntu(
    out: Path, gathered: Gathered, plan: ubuntu.UbuntuPlan, knowledge: pl.DataFrame | None, advance: Step
) -> Description:
    """Write subtasks 1, 2, 4 and 5 and the Ubuntu Dialogue Corpus setting."""
    built: dict[str, int] = {}
    replies: dict[str, list[str]] = {}
    for subtask, split, task in ubuntu.build_subtasks(gathered, plan):
        for number in (1, 5) if subtask == 1 and knowledge is not None else (subtask,):
            save_task(out, _card("ubuntu", number, split, plan.seed, plan.hard), task)
            built[f"subtask_{number}/{split}"] = task.examples.height
        if subtask == 1:
            replies[split] = _correct_texts(task)
        advance(1)
    if gathered.replies:
        built["turns/train"] = _write_turns(out / "turns" / "train", gathered, plan)
    if knowledge is not None:
        write_knowledge(out / "knowledge.parquet", knowledge)
    _write_ubuntu_corpus(out / "ubuntu_corpus", gathered, plan)
    description = Description(
        "ubuntu",
        describe(support.messages for support in gathered.dialogues),
        dict(sorted(built.items())),
        {split: overlap(replies["train"], replies[split]) for split in ("dev", "test")},
        _funnel(gathered.funnel),
        [*gathered.notes, *_uneven(gathered, plan), *_short_of(plan, len(gathered.utterances))],
    )
    write_description(out, description, markdown(description))
    return description


def _write_turns(folder: Path, gathered: Gathered, plan: ubuntu.UbuntuPlan) -> int:
    task = ubuntu.training_replies(gathered, plan.shares)
    task.save(folder)
    write_card(folder, Card("ubuntu", 2, "train", task.examples.height, task.options.height, plan.seed))
    return task.examples.height


LITTLE_TO_TRAIN = 0.6
"""Share of the dialogues for train below which the split is far from the one that was wanted."""


def _uneven(gathered: Gathered, plan: ubuntu.UbuntuPlan) -> list[str]:
    train = len(ubuntu.split_by_day(gathered.dialogues, plan.shares)["train"]) / len(gathered.dialogues)
    days = len({dialogue.day for dialogue in gathered.dialogues})
    if train >= LITTLE_TO_TRAIN:
        return []
    wanted = f"{plan.shares[0]:.0%}"
    return [
        f"train has {train:.0%} of the dialogues, not {wanted}: whole days are split, and there are {days} with a "
        "dialogue; about ten allow it"
    ]


def _short_of(plan: ubuntu.UbuntuPlan, found: int) -> list[str]:
    if found >= plan.pool_size:
        return []
    return [f"the pool holds all {found:,} different utterances of the logs; {plan.pool_size:,} were wanted"]


def _card(dataset: str, subtask: int, split: str, seed: int, hard: bool) -> Card:
    knowledge = "../../knowledge.parquet" if subtask == 5 else None
    return Card(dataset, subtask, split, 0, 0, seed, "hard" if hard else "random", knowledge)


def _correct_texts(task: SelectionTask) -> list[str]:
    return task.options["text"].gather(task.examples["correct"].explode().drop_nulls()).to_list()


def _funnel(funnel: Funnel) -> dict[str, int]:
    removed = {FILTERS[name]: funnel.removed[name] for name in FILTERS}
    return {"conversations": funnel.conversations, **removed, "kept": funnel.kept}


def _write_ubuntu_corpus(out: Path, gathered: Gathered, plan: ubuntu.UbuntuPlan) -> None:
    """Write the setting of Lowe et al. (2015): labelled pairs to train on, ten options for dev and test."""
    split = ubuntu.split_by_day(gathered.dialogues, plan.shares)
    for side, cuts in ubuntu.cut_sides(split, plan, ubuntu.side_seeds(plan.seed, 0)).items():
        if side == "train":
            write_training_pairs(out / "train.csv", cuts, plan.seed)
        else:
            task = build_task(cuts, ubuntu.replies(split[side]), 10, seed=plan.seed)
            write_test(out / f"{'valid' if side == 'dev' else side}.csv", task)


class AdvisingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The choices to be made when building Advising."""

    seed: int = 0
    train_size: int = 100_000
    candidates: int = 100
    without_answer: float = 0.2
    hard: bool = False


def write_advising(
    out: Path, records: Sequence[AdvisingRecord], courses: pl.DataFrame | None, plan: AdvisingPlan, advance: Step
) -> Description:
    """Write subtasks 1, 3, 4 and 5, with an overlapping test set (test_1) and a disjoint one (test_2)."""
    rng = np.random.default_rng(plan.seed)
    sides = advising.divide(records, rng)
    wrong = advising.wrong_utterances(sides.wrong)
    splits = {
        "train": list(advising.sample_partials(sides.train, plan.train_size, rng)),
        "dev": list(advising.versions(sides.dev, rng)),
        "test_1": list(advising.versions(sides.train[: len(sides.test)], rng)),
        "test_2": list(advising.versions(sides.test, rng)),
    }
    built: dict[str, int] = {}
    for number, (split, partials) in enumerate(splits.items(), 1):
        for subtask, task in _advising_tasks(partials, wrong, plan, number):
            if subtask == 5 and courses is None:
                continue
            save_task(out, _card("advising", subtask, split, plan.seed, plan.hard), task)
            built[f"subtask_{subtask}/{split}"] = task.examples.height
        advance(1)
    if courses is not None:
        write_knowledge(out / "knowledge.parquet", courses)
    replies = {split: [partial.cut.replies[0] for partial in partials] for split, partials in splits.items()}
    description = Description(
        "advising",
        describe([utterance.text for utterance in record.utterances] for record in records),
        dict(sorted(built.items())),
        {split: overlap(replies["train"], replies[split]) for split in ("dev", "test_1", "test_2")},
        {name: len(getattr(sides, name)) for name in ("train", "dev", "test", "wrong")},
    )
    write_description(out, description, markdown(description))
    return description


def _advising_tasks(
    partials: Sequence[advising.Partial], wrong: list[tuple[str, ...]], plan: AdvisingPlan, number: int
) -> Iterator[tuple[int, SelectionTask]]:
    similar = similar_by_words() if plan.hard else None
    single = [advising.first_reply_only(partial.cut) for partial in partials]
    one_way = [(text,) for ways in wrong for text in ways]  # in any wording, as the right one is
    profiles = [msgspec.json.encode(partial.profile).decode() for partial in partials]
    for subtask in (1, 3, 4, 5):
        cuts: Sequence[Cut] = [partial.cut for partial in partials] if subtask == 3 else single
        seed = int(np.random.SeedSequence([plan.seed, 1 if subtask == 5 else subtask, number]).generate_state(1)[0])
        task = build_task(
            cuts,
            wrong if subtask == 3 else one_way,
            plan.candidates,
            plan.without_answer if subtask == 4 else 0.0,
            seed,
            similar,
            first_id=(subtask * 10 + number) * ubuntu.room(len(cuts)) + 1,
        )
        table = pl.DataFrame({"id": task.examples["id"], "profile": profiles}, schema=PROFILE_SCHEMA)
        yield subtask, msgspec.structs.replace(task, profiles=table)


def markdown(description: Description) -> Iterable[str]:
    """Say what was built, for people."""
    yield f"# {description.dataset}\n"
    yield "| property (DSTC7, table 1) | value |\n|---|---|"
    for name, value in msgspec.to_builtins(description.diversity).items():
        yield f"| {name.replace('_', ' ')} | {value:,.1f} |" if isinstance(value, float) else f"| {name} | {value:,} |"
    yield "\n| conversations | count |\n|---|---|"
    yield from (f"| {name} | {count:,} |" for name, count in description.funnel.items())
    yield "\n| task | examples |\n|---|---|"
    yield from (f"| {name} | {count:,} |" for name, count in description.tasks.items())
    yield "\n| replies that train has too | replies | the same | nearly the same |\n|---|---|---|---|"
    yield from (f"| {name} | {o.replies:,} | {o.same:,} | {o.alike:,} |" for name, o in description.overlaps.items())
    yield from (f"\n{note}" for note in description.notes)
    yield ""
