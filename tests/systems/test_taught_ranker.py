import json
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest

torch = pytest.importorskip("torch")

from scipy.special import log_softmax, softmax  # noqa: E402
from tests.systems.small_networks import cuts, recipe, trained  # noqa: E402

from rejoinder import training  # noqa: E402
from rejoinder.errors import UserError  # noqa: E402
from rejoinder.measures.selection import score  # noqa: E402
from rejoinder.model import Assignment, load_model, predict, train_model  # noqa: E402
from rejoinder.nn.ranking import Ranking  # noqa: E402
from rejoinder.recipe import Recipe  # noqa: E402
from rejoinder.systems.system import Prepared  # noqa: E402
from rejoinder.tasks.build import build_pool_task, build_task  # noqa: E402


def taught(teacher, share):
    """Return a recipe for a network that a teacher teaches."""
    made = recipe("dot", taught=share)
    return msgspec.structs.replace(made, settings=made.settings | {"teacher": str(teacher)})


def test_a_teacher_is_believed_as_far_as_the_recipe_says(tasks, tmp_path):
    trained(tasks, recipe("dot"), tmp_path / "teacher")
    path, train = tasks["train"]
    rolled = pl.concat([train.examples["correct"][1:], train.examples["correct"][:1]])
    misled = msgspec.structs.replace(train, examples=train.examples.with_columns(correct=rolled, options=rolled))
    found = {}
    for share in (1.0, 0.0):
        made = taught(tmp_path / "teacher", share) if share else recipe("dot")
        given = Assignment(recipe=made, train=(path, misled))
        train_model(given, tmp_path / str(share))
        run = predict(*load_model(tmp_path / str(share)), *tasks["dev"])
        found[share] = score(run, tasks["dev"][1].truth(), ["MRR"])["MRR"].mean()
    assert found[1.0] > 0.9
    assert found[0.0] < 0.6
    assert not (tmp_path / "1.0" / "parts").exists()


def taught_learner(tasks, folder, share):
    trained(tasks, recipe("dot"), folder / "teacher")
    with pytest.raises(Prepared):
        trained(tasks, taught(folder / "teacher", share), folder / "out", work=folder / "w", prepare_only=True)
    described = json.loads((folder / "w" / "stage_1" / "learner.json").read_text())
    return Ranking(described["settings"], folder / "w" / "stage_1", 0, torch.device("cpu"))


def test_the_loss_leans_to_the_teacher(tasks, tmp_path):
    learner = taught_learner(tasks, tmp_path, 0.25)
    rows = torch.arange(6)
    right = learner.train.correct[rows]
    assert len(set(right.tolist())) == len(right)
    scores = learner.network(learner.train.contexts(rows), learner.train.replies(right)).detach().numpy()
    _, teacher = load_model(tmp_path / "teacher")
    texts = [tasks["train"][1].options["text"][row[0]] for row in tasks["train"][1].examples["correct"][:6].to_list()]
    opinion = teacher.encode_contexts(tasks["train"][1])[:6] @ teacher.encode_replies(texts).T
    target = 0.75 * np.eye(6) + 0.25 * softmax(opinion, axis=1)
    expected = -(target * log_softmax(scores, axis=1)).sum(1).mean()
    assert learner.loss(rows).item() == pytest.approx(expected, rel=1e-3)
    plain = -np.diag(log_softmax(scores, axis=1)).mean()
    assert abs(plain - expected) > 0.01


def test_a_teacher_has_no_say_of_what_is_right_as_well(tasks, tmp_path):
    learner = taught_learner(tasks, tmp_path, 1.0)
    rows, place = torch.arange(2), torch.tensor([0, 1])
    options = learner.train.correct[torch.tensor([0, 1, 2])]
    learner.train.correct_padded = torch.tensor([[options[0], options[2]], [options[1], -1]])
    scores = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    opinion = learner.teacher(rows, options).numpy()
    expected = np.mean([_cross_entropy(opinion[0, :2], [1.0, 2.0]), _cross_entropy(opinion[1], [1.0, 2.0, 3.0])])
    assert learner._softmax_loss(scores, rows, options, place).item() == pytest.approx(expected, rel=1e-4)


def _cross_entropy(opinion, scores):
    return -(softmax(opinion) * log_softmax(scores)).sum()


def test_a_teacher_is_trained_once_and_left_behind(tasks, tmp_path, monkeypatch):
    (tmp_path / "teacher.yaml").write_text(json.dumps(msgspec.to_builtins(recipe("bilinear"))))
    made = taught(tmp_path / "teacher.yaml", 0.5)
    for _ in range(2):
        with pytest.raises(Prepared) as stopped:
            trained(tasks, made, tmp_path / "out", work=tmp_path / "w", prepare_only=True)
        assert Path(str(stopped.value)).match("w/made/teacher-*.work/stage_1")
    training.train(Path(str(stopped.value)))
    with pytest.raises(Prepared) as stopped:
        trained(tasks, made, tmp_path / "out", work=tmp_path / "w", prepare_only=True)
    assert str(stopped.value) == str(tmp_path / "w" / "stage_1")
    (weights,) = (tmp_path / "w" / "made").glob("teacher-*.work/stage_1/weights.safetensors")
    before = weights.stat().st_mtime_ns
    trained(tasks, made, tmp_path / "out", work=tmp_path / "w")
    assert weights.stat().st_mtime_ns == before
    assert len(list((tmp_path / "out").rglob("*.safetensors"))) == 1


def written(path, made):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(msgspec.to_builtins(made)))
    return str(path)


def stack_of(*members):
    return Recipe(about="a test", system="ensemble", settings={"members": members, "method": "ranks"}, name="stack")


@pytest.mark.parametrize(("folders", "teachers"), [(("a", "a"), 1), (("a", "b"), 2)])
def test_members_of_a_stack_share_a_teacher(tasks, tmp_path, folders, teachers):
    written(tmp_path / "a" / "teacher.yaml", recipe("bilinear"))
    written(tmp_path / "b" / "teacher.yaml", recipe("dot", "gru"))
    members = [
        written(tmp_path / f"{number}.yaml", taught(tmp_path / folder / "teacher.yaml", 0.5))
        for number, folder in enumerate(folders)
    ]
    trained(tasks, stack_of(*members), tmp_path / "out", work=tmp_path / "w")
    assert len(list((tmp_path / "w").rglob("teacher-*/model.yaml"))) == teachers
    assert len(list((tmp_path / "out").rglob("*.safetensors"))) == 2


def test_what_is_a_part_and_a_teacher_is_trained_once(tasks, tmp_path):
    part = written(tmp_path / "part.yaml", recipe("dot"))
    both = stack_of(part, written(tmp_path / "member.yaml", taught(part, 0.5)))
    card = trained(tasks, both, tmp_path / "out", work=tmp_path / "w")
    assert len(list((tmp_path / "w").rglob("part-*/history.json"))) == 1
    pooled = msgspec.structs.replace(
        both, system="cascade", settings={"encoder": part, "rankers": {str(tmp_path / "member.yaml"): 20}}
    )
    trained(tasks, pooled, tmp_path / "pooled", work=tmp_path / "v")
    assert len(list((tmp_path / "v").rglob("part-*/history.json"))) == 1
    assert not card.dev.drawn


def test_who_learned_from_another_is_another_teacher(tasks, tmp_path):
    middle = written(tmp_path / "b" / "teacher.yaml", taught(tmp_path / "a" / "teacher.yaml", 0.5))
    stack = stack_of(written(tmp_path / "member.yaml", taught(middle, 0.5)))
    for kind in ("bag", "gru"):  # the recipe of the one in the middle stays the same
        written(tmp_path / "a" / "teacher.yaml", recipe("dot", kind))
        for _ in range(2):
            with pytest.raises(Prepared) as stopped:
                trained(tasks, stack, tmp_path / "out", work=tmp_path / "w", prepare_only=True)
            training.train(Path(str(stopped.value)))
        with pytest.raises(Prepared, match="member-"):
            trained(tasks, stack, tmp_path / "out", work=tmp_path / "w", prepare_only=True)
    assert len(list((tmp_path / "w" / "made").glob("teacher-*/model.yaml"))) == 4


def test_a_member_that_cannot_be_taught_shows_before_another_is_trained(tasks, tmp_path):
    first = written(tmp_path / "one.yaml", recipe("dot"))
    second = written(tmp_path / "two.yaml", taught("late-encoder", 0.5))
    with pytest.raises(UserError, match="late-encoder cannot teach"):
        trained(tasks, stack_of(first, second), tmp_path / "out", work=tmp_path / "w")
    assert not (tmp_path / "w").exists()


def test_none_of_one_option_can_be_learned_with_a_network(tasks, tmp_path):
    trained(tasks, recipe("dot"), tmp_path / "ranker")
    own = list(cuts(40, 3))
    lonely = build_task(own, [cut.replies for cut in own], 1, without_answer=0.5, seed=3)
    lonely.save(tmp_path / "lonely")
    made = Recipe(about="a test", system="abstain", settings={"ranker": str(tmp_path / "ranker")}, name="none")
    given = Assignment(recipe=made, train=tasks["train"], dev=(tmp_path / "lonely", lonely))
    train_model(given, tmp_path / "out")
    run = predict(*load_model(tmp_path / "out"), tmp_path / "lonely", lonely)
    assert run.choices.group_by("example").len()["len"].unique().to_list() == [2]


@pytest.mark.parametrize("members", [("unsaid", "dot.yaml"), ("bm25", "late.yaml")])
def test_a_stack_that_searches_no_pool_learns_from_lists_to_rank_in_a_cascade(tmp_path, monkeypatch, members):
    monkeypatch.chdir(tmp_path)
    pool = list(dict.fromkeys(reply for cut in [*cuts(200, 1), *cuts(40, 2)] for reply in cut.replies))
    pools = {}
    for split, (count, seed) in {"train": (200, 1), "dev": (40, 2)}.items():
        pools[split] = (tmp_path / split, build_pool_task(list(cuts(count, seed)), pool))
        pools[split][1].save(tmp_path / split)
    for match in ("dot", "late"):
        Path(f"{match}.yaml").write_text(json.dumps(msgspec.to_builtins(recipe(match))))
    stacked = Recipe(about="a test", system="ensemble", settings={"members": list(members)})
    Path("stacked.yaml").write_text(json.dumps(msgspec.to_builtins(stacked)))
    settings = {"encoder": "dot.yaml", "rankers": {"stacked.yaml": 20}, "found": 30}
    trained(pools, Recipe(about="a test", system="cascade", settings=settings, name="c"), tmp_path / "out")
    assert all(load_model(tmp_path / "out" / "parts" / part)[0].dev.drawn for part in "01")
    run = predict(*load_model(tmp_path / "out"), *pools["dev"])
    assert score(run, pools["dev"][1].truth(), ["R@10"])["R@10"].mean() > 0.3  # 0.06 at random
    with pytest.raises(UserError, match=r"searches no pool|own options alone"):
        trained(pools, msgspec.structs.replace(stacked, name="s"), tmp_path / "alone")


def test_teachers_that_cannot_teach(tasks, tmp_path):
    trained(tasks, recipe("poly"), tmp_path / "poly")
    binary = taught("bi-encoder", 0.5)
    binary.settings["stages"][0]["loss"] = "binary"
    itself = taught(tmp_path / "itself.yaml", 0.5)
    (tmp_path / "itself.yaml").write_text(json.dumps(msgspec.to_builtins(itself)))
    for made, problem in (
        (taught("bm25", 0.5), "one vector for each text"),
        (taught("minilm", 0.5), "one vector for each text"),
        (taught("late-encoder", 0.5), "late-encoder cannot teach"),
        (taught(tmp_path / "poly", 0.5), "poly cannot teach"),
        (recipe("dot", taught=0.5), "need each other"),
        (taught("bi-encoder", 0.0), "need each other"),
        (taught("bi-encodr", 0.5), "did you mean 'bi-encoder'"),
        (binary, "here is none"),
        (itself, "made of itself"),
    ):
        with pytest.raises(UserError, match=problem):
            trained(tasks, made, tmp_path / "out")
        assert not (tmp_path / "out").exists()


def test_another_teacher_is_not_mistaken_for_the_old_one(tasks, tmp_path, complaint):
    trained(tasks, recipe("dot"), tmp_path / "teacher")
    made, work = taught(tmp_path / "teacher", 0.5), tmp_path / "w"
    card = trained(tasks, made, tmp_path / "first", work=work)
    assert card.teacher.recipes[0].name == "dot"
    trained(tasks, recipe("dot", "gru"), tmp_path / "teacher")
    assert "holds what another recipe" in complaint(trained, tasks, made, tmp_path / "second", work=work)
    source = tmp_path / "teacher.yaml"
    for match in ("dot", "bilinear"):
        source.write_text(json.dumps(msgspec.to_builtins(recipe(match))))
        hidden = tmp_path / ".third.part" / "work"
        with pytest.raises(Prepared):
            trained(tasks, taught(source, 0.5), tmp_path / "third", prepare_only=True)
        stages = {
            json.loads((stage / "learner.json").read_text())["settings"]["network"]["match"]: stage
            for stage in hidden.glob("made/teacher-*.work/stage_1")
        }
        assert match in stages
        training.train(stages[match])


def test_a_part_that_was_changed_after_an_interruption_is_trained_anew(tasks, tmp_path):
    sources = [tmp_path / "one.yaml", tmp_path / "two.yaml"]
    for source in sources:
        source.write_text(json.dumps(msgspec.to_builtins(recipe("dot"))))
    settings = {"members": [str(source) for source in sources], "method": "ranks"}
    both = Recipe(about="a test", system="ensemble", settings=settings, name="both")
    with pytest.raises(Prepared):
        trained(tasks, both, tmp_path / "out", prepare_only=True)
    (stage,) = tmp_path.glob(".out.part/work/made/one-*.work/stage_1")
    training.train(stage)
    sources[0].write_text(json.dumps(msgspec.to_builtins(recipe("bilinear"))))
    trained(tasks, both, tmp_path / "out")
    learner = json.loads((tmp_path / "out" / "parts" / "0" / "learner.json").read_text())
    assert learner["settings"]["network"]["match"] == "bilinear"


def test_vectors_too_large_to_teach_by(tasks, tmp_path):
    made = recipe("dot")
    made.settings["stages"][0]["network"]["scale"] = 2e6
    trained(tasks, made, tmp_path / "teacher")
    with pytest.raises(UserError, match="lower scale"):
        trained(tasks, taught(tmp_path / "teacher", 0.5), tmp_path / "out")
