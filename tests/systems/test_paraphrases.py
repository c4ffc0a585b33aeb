"""Every ranker works where several options are correct (DSTC7, subtask 3)."""

import json

import pytest

from rejoinder.sample import advising
from rejoinder.tasks.build import Cut, build_task


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("paraphrases")
    talks = [
        [(said.speaker, (said.text, *said.paraphrases)[:5]) for said in dialogue.utterances]
        for dialogue in advising.dialogues(120, seed=3)
    ]
    wrong = [ways for talk in talks for _, ways in talk]
    for number, split in enumerate(("train", "dev", "test")):
        cuts = [
            Cut(tuple((speaker, ways[0]) for speaker, ways in talk[:-1]), talk[-1][1])
            for talk in talks[40 * number : 40 * number + 40]
        ]
        build_task(cuts, wrong, 50, seed=number, first_id=1 + 100 * number).save(out / "task" / split)
    return out


@pytest.mark.parametrize("recipe", ["tfidf", "bm25", "words", "words-or-none"])
def test_several_correct_options_are_ranked_and_scored_by_map(cli, folder, recipe):
    task = folder / "task"
    assert cli("train", recipe, "--task", task, "--out", folder / recipe)[0] == 0
    assert cli("train", "random", "--task", task, "--out", folder / "random")[0] == 0
    found = {}
    for name in (recipe, "random"):
        assert cli("predict", folder / name, "--task", task / "test", "--out", folder / f"{name}.json")[0] == 0
        code, out, _ = cli("score", task / "test", folder / f"{name}.json", "--json")
        assert code == 0
        found[name] = json.loads(out)["runs"][0]["measures"]["MAP"]["mean"]
    assert found[recipe] > found["random"] + 0.05
