"""The film systems, on a generated world; what they should learn is worked out from its knowledge base."""

from itertools import pairwise

import msgspec
import numpy as np
import polars as pl
import pytest
from scipy import sparse

from rejoinder.corpora.entities import Parser
from rejoinder.model import load_model
from rejoinder.model import predict as answer
from rejoinder.runs import read_selection_run
from rejoinder.sample import films
from rejoinder.systems.film_patterns import TARGET, Patterns, Vocabulary, choose_vocabulary, read
from rejoinder.systems.film_recommender import ease
from rejoinder.systems.film_world import world_of
from rejoinder.tasks.selection import load_selection_task

SIZES = {"qa": 1500, "recs": 1500, "dialogue": 500, "talk": 300, "joint": 200, "eval": 100}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("films")
    films.write(folder / "sample", 200, 0)
    return folder


@pytest.fixture
def built(world, cli):
    if not (world / "movies").is_dir():
        sample = world / "sample"
        sizes = [part for name, size in SIZES.items() for part in (f"--{name}-size", size)]
        files = ("--kb", sample / "movie_kb.txt", "--ratings", sample / "ratings.csv")
        files += ("--threads", sample / "threads.jsonl")
        code, _, err = cli("build", "movies", *files, *sizes, "--candidates", 50, "--out", world / "movies")
        assert code == 0, err
    return world / "movies"


def hits(task, run, k):
    best = run.choices.filter(pl.int_range(pl.len()).over("example") < k)
    right = best.join(task.truth().correct, on=["example", "option"], how="semi")["example"].n_unique()
    return right / task.examples.height


def learn(cli, built, tmp_path, recipe, number, seed=0):
    model = tmp_path / f"{recipe}.model"
    code, _, err = cli("train", recipe, "--task", built / f"task_{number}", "--out", model, "--seed", seed)
    assert code == 0, err
    return model


def answered(model, folder):
    card, system = load_model(model)
    task = load_selection_task(folder)
    return task, answer(card, system, folder, task)


def test_questions_are_answered_from_the_knowledge_base(cli, built, tmp_path):
    model = learn(cli, built, tmp_path, "films-questions", 1)
    task, run = answered(model, built / "task_1" / "test")
    assert hits(task, run, 1) > 0.95
    out = tmp_path / "run.parquet"
    assert cli("predict", model, "--task", built / "task_1" / "test", "--out", out, "--format", "parquet")[0] == 0
    again = read_selection_run(out, task.truth())
    assert again.choices["option"].to_list() == run.choices["option"].to_list()


def test_examples_that_nothing_is_known_about_are_answered_too(cli, built, tmp_path):
    model = learn(cli, built, tmp_path, "films-questions", 1)
    task = load_selection_task(built / "task_1" / "test")
    turns = pl.Series("turns", [[{"speaker": "a", "text": "hm"}]] * 3 + task.examples["turns"].to_list()[3:])
    asked = msgspec.structs.replace(task, examples=task.examples.with_columns(turns))
    asked.save(tmp_path / "asked")
    out = tmp_path / "run.parquet"
    code, _, err = cli("predict", model, "--task", tmp_path / "asked", "--out", out)
    assert (code, "nothing was found for 3 of 100 examples" in err) == (0, True), err
    run = read_selection_run(out, task.truth())
    assert run.choices.filter(pl.col("example") < 3).rows() == [(i, task.options["id"][0], 0.0) for i in range(3)]


@pytest.mark.parametrize(("recipe", "task", "file"), [
    ("films-questions", 1, "patterns.npz"), ("films-ease", 2, "recommender.npz"),
])  # fmt: skip
def test_damaged_models_are_named(cli, built, tmp_path, recipe, task, file):
    model = learn(cli, built, tmp_path, recipe, task)
    (model / file).write_bytes((model / file).read_bytes()[:100])
    code, _, err = cli("predict", model, "--task", built / f"task_{task}" / "test", "--out", tmp_path / "run")
    assert (code, f"{file}: damaged" in err) == (2, True), err


def test_scores_below_zero_are_written_as_parquet(cli, built, tmp_path):
    model, test = learn(cli, built, tmp_path, "films-ease", 2), built / "task_2" / "test"
    code, out, _ = cli("predict", model, "--task", test, "--out", tmp_path / "run")
    assert (code, "(parquet)" in out) == (0, True)
    assert read_selection_run(tmp_path / "run", load_selection_task(test).truth()).choices["score"].min() < 0
    code, _, err = cli("predict", model, "--task", test, "--out", tmp_path / "other", "--format", "dstc7")
    assert (code, "cannot hold negative confidences" in err) == (2, True)


def test_what_is_not_said_is_taken_from_the_turn_before(cli, built, tmp_path):
    model = learn(cli, built, tmp_path, "films-guide", 3)
    task, run = answered(model, built / "task_3" / "test")
    assert load_model(model)[1].recommender.learned["constancy"] > 1  # what was wished for at first still counts
    by_response = {}
    for number in (1, 2, 3):
        rows = np.flatnonzero(task.groups["response"].to_numpy() == number)
        best = run.choices.filter(pl.int_range(pl.len()).over("example") < 10)
        right = best.join(task.truth().correct, on=["example", "option"], how="semi")["example"].unique()
        by_response[number] = np.isin(rows, right.to_numpy()).mean()
    assert by_response[2] > 0.95  # "who directed that?"
    assert by_response[3] > 0.5
    named = task.examples["turns"].list.first().struct.field("text")
    first = run.choices.group_by("example", maintain_order=True).first()
    suggested = first.filter(pl.col("example") % 3 == 0)
    assert not any(f" {option}, " in f" {named[example]}" for example, option, _ in suggested.iter_rows())


@pytest.mark.parametrize("recipe", ["films-popularity", "films-svd", "films-ease", "films-tastes"])
def test_recommendations_are_films_that_were_not_named(cli, built, tmp_path, recipe):
    model = learn(cli, built, tmp_path, recipe, 2)
    task, run = answered(model, built / "task_2" / "test")
    world = world_of(task)
    chosen = set(run.choices["option"].to_list())
    titles = {world.kb.entities[number] for number in world.films.tolist()}
    assert chosen <= titles
    parsed = world.parser.parse(task.contexts())
    for example in range(20):
        said = {world.kb.entities[e] for e in parsed.entities[parsed.starts[example] : parsed.starts[example + 1]]}
        ranked = run.choices.filter(pl.col("example") == example)
        assert not said & set(ranked["option"])
        assert ranked["score"].is_sorted(descending=True)
        assert ranked.height <= 100


def test_learned_tastes_are_better_than_popularity(cli, built, tmp_path):
    found = {}
    for recipe in ("films-popularity", "films-tastes"):
        task, run = answered(learn(cli, built, tmp_path, recipe, 2), built / "task_2" / "test")
        found[recipe] = hits(task, run, 20)
    assert found["films-tastes"] > found["films-popularity"]


def test_ease_solves_its_own_equations():
    """Each film's weights are the ridge regression of its column on all others (Steck 2019, section 2)."""
    rng = np.random.default_rng(0)
    liked = (rng.random((40, 7)) < 0.4).astype(np.float32)
    penalty = 0.5
    weights = ease(sparse.csr_matrix(liked), penalty)
    assert np.abs(np.diag(weights)).max() == 0
    strength = penalty * (liked.T @ liked).diagonal().mean()
    for film in range(7):
        others = np.delete(np.arange(7), film)
        gram = liked[:, others].T @ liked[:, others] + strength * np.eye(6)
        expected = np.linalg.solve(gram, liked[:, others].T @ liked[:, film])
        np.testing.assert_allclose(weights[others, film], expected, atol=1e-4)


def test_the_likelihood_of_a_wording_is_a_product_over_pairs(built):
    """A reading's score is the sum of the table along its items, whatever entity is taken to be the target."""
    task = load_selection_task(built / "task_1" / "train")
    world = world_of(task)
    title = world.kb.entities[world.films[0]]
    patterns = Patterns()
    patterns.vocabulary = choose_vocabulary(world.parser, [f"who directed {title}?", "who wrote it?"] * 10)
    reading = read(world.parser, [f"who directed {title}?"], patterns.vocabulary)
    size = len(patterns.vocabulary)
    patterns.table = np.log(np.random.default_rng(0).random((size, size, 2))).astype(np.float32)
    position = int(np.flatnonzero(reading.entity == world.films[0])[0])
    chain = [TARGET if place == position else reading.item[place] for place in reading.chains()[0].tolist()]
    steps = [0, *chain, 0]
    expected = sum(patterns.table[a, b] for a, b in pairwise(steps))
    found = patterns.score(reading, np.array([0]), np.array([position]))
    np.testing.assert_allclose(found[0], expected, rtol=1e-4)
    assert isinstance(patterns.vocabulary, Vocabulary)


def test_systems_for_films_say_so_of_other_tasks(cli, built, tmp_path, save):
    folder = tmp_path / "bare"
    task = load_selection_task(built / "task_1" / "test")
    folder.mkdir()
    task.save(folder)
    code, _, err = cli("train", "films-questions", "--task", folder, "--out", tmp_path / "m")
    assert code == 2
    assert "film tasks, which name their knowledge base" in err
    for recipe, number, problem in (
        ("films-questions", 2, "these are no questions about facts; films-guide and films-tastes recommend films"),
        ("films-tastes", 1, "no example names films in its first turn and has one film as its answer"),
    ):
        code, _, err = cli("train", recipe, "--task", built / f"task_{number}", "--out", tmp_path / "m")
        assert (code, err.count("\n"), problem in err) == (2, 1, True), err
    assert not (tmp_path / "m").exists()


@pytest.fixture
def embedded(cli, tmp_path, save):
    """Train embeddings with some settings on a task, and return the model."""

    def train(task, epochs, **settings):
        training = {"optimizer": "adagrad", "rate": 0.1, "batch": 32, "epochs": epochs, "patience": 0}
        recipe = save("e.yaml", {"about": "x", "system": "embeddings", "settings": settings | {"training": training}})
        code, _, err = cli("train", recipe, "--task", task, "--out", tmp_path / "e.model")
        assert code == 0, err
        return tmp_path / "e.model"

    return train


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"negatives": 0}, "negatives is 0; expected 1 or more"),
        ({"dictionaries": 3}, "dictionaries is 3; expected 1 or 2"),
        ({"training": {"optimizer": "adamw"}}, "optimizer is adamw; expected adagrad"),
    ],
)
def test_embeddings_that_cannot_be_trained_are_refused(cli, built, tmp_path, save, settings, problem):
    recipe = save("e.yaml", {"about": "x", "system": "embeddings", "settings": settings})
    code, _, err = cli("train", recipe, "--task", built / "task_1", "--out", tmp_path / "e.model")
    assert (code, problem in err) == (2, True), err


def test_embeddings_need_no_settings_and_may_learn_nothing(cli, built, tmp_path, save):
    for settings in ({"training": {"optimizer": "adagrad", "epochs": 0}}, {}):
        recipe = save("e.yaml", {"about": "x", "system": "embeddings", "settings": settings})
        code, _, err = cli("train", recipe, "--task", built / "task_1", "--out", tmp_path / "e.model")
        assert code == 0, err


def test_embeddings_learn_facts_by_heart(embedded, built):
    model = embedded(built / "task_1", epochs=8, dimension=16, margin=0.5, negatives=32)
    task, run = answered(model, built / "task_1" / "train")
    by_chance = 10 / task.options.height
    assert hits(task, run, 10) > 20 * by_chance
    assert run.choices.group_by("example").len()["len"].max() <= 100
    said = task.contexts()
    first = run.choices.group_by("example", maintain_order=True).first()
    assert not any(said[e].endswith(f" {option}?") for e, option, _ in first.iter_rows())


def test_joint_embeddings_answer_every_task(embedded, built):
    model = embedded(built / "task_5", epochs=1, dimension=8, dictionaries=2, negatives=16)
    for number in (1, 2, 3, 4):
        task, run = answered(model, built / f"task_{number}" / "test")
        assert run.choices["example"].n_unique() == task.examples.height
        assert run.choices["option"].is_in(task.options["id"].implode()).all()


def test_embeddings_are_sums_and_their_loss_a_margin(tmp_path):
    """Worked by hand: contexts {0, 1} and {2}, options {0}, {1}, {2}; one correct option each, two drawn."""
    torch = pytest.importorskip("torch")
    from rejoinder.nn.embedding_learner import EmbeddingLearner
    from rejoinder.prepared import save_arrays

    rows = {
        "contexts": ([0, 1, 2], [0, 2, 3]), "options": ([0, 1, 2], [0, 1, 2, 3]), "correct": ([0, 1], [0, 1, 2]),
        "dev_contexts": ([0, 1, 2], [0, 2, 3]), "dev_options": ([0, 1, 2], [0, 1, 2, 3]),
        "dev_correct": ([0, 1], [0, 1, 2]), "dev_named": ([2], [0, 1, 1]),
    }  # fmt: skip
    for name, (values, starts) in rows.items():
        save_arrays(tmp_path, {name: np.array(values), f"{name}_starts": np.array(starts)})
    settings = {"symbols": 3, "dimension": 2, "dictionaries": 2, "margin": 0.5, "negatives": 2, "batch": 2}
    learner = EmbeddingLearner(settings, tmp_path, 0, torch.device("cpu"))
    said, replied = np.array([[1, 0], [0, 0.8], [0.5, 0.5]]), np.array([[0.5, 0], [0, 1], [0.6, 0.6]])
    learner.network.said.weight.data = torch.tensor(said)
    learner.network.replied.weight.data = torch.tensor(replied)
    contexts = np.array([(said[0] + said[1]) / np.sqrt(2), said[2]])
    scores = contexts @ replied.T
    rivals = max(scores[0, 1], scores[0, 2]), scores[1, 2]  # option 1 is correct for the second
    expected = (max(0, 0.5 - scores[0, 0] + rivals[0]) + max(0, 0.5 - scores[1, 1] + rivals[1])) / 2
    assert learner.loss(np.array([0, 1, 0, 1, 1, 2])).item() == pytest.approx(expected, rel=1e-5)
    ranks = [int(scores[0, 1] > scores[0, 0]), (scores[1] > scores[1, 1]).sum()]  # the first names option 2
    assert ranks == [1, 1]
    assert learner.evaluate() == pytest.approx(np.mean([1 / (1 + rank) for rank in ranks]))
    everything = learner.loss(np.array([0, 0, 0, 0]))  # nothing wrong was drawn
    assert everything.item() == 0
    learner.network.replied.weight.data.zero_()  # of equals the one listed first is above
    assert learner.evaluate() == pytest.approx((1 + 1 / 2) / 2)
    save_arrays(tmp_path, {"correct": np.zeros(0, int), "correct_starts": np.zeros(3, int)})
    assert EmbeddingLearner(settings, tmp_path, 0, torch.device("cpu")).batches(0) == []


def test_entities_that_share_a_symbol_have_one_of_their_own():
    from rejoinder.corpora.dictionary import Dictionary
    from rejoinder.systems.embeddings import _own_symbols, _symbols

    dictionary = Dictionary(Parser(["Drama", "drama", "Alien"]), ["is"])
    own = _own_symbols(dictionary)
    shared, alien, word = 0, 1, 2
    assert own.tolist() == [3, 4, -1]
    found = _symbols(dictionary.parse(["Alien is Drama", "drama", "DRAMA", "nothing"]), own)
    assert found.lists() == [[alien, word, shared, 3], [shared, 4], [shared], []]
