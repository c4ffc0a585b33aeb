import polars as pl
import pytest

from rejoinder.corpora.entities import Parser
from rejoinder.corpora.film_table import read_films
from rejoinder.corpora.films import KnowledgeBase, read_kb
from rejoinder.tasks.card import read_card
from rejoinder.tasks.film_groups import entity_matches, question_classes
from rejoinder.tasks.film_transfer import read_candidates, sort_files
from rejoinder.tasks.selection import load_selection_task

FACTS = (
    "1 Alien directed_by Ridley Scott\n2 Alien written_by Dan O'Bannon, Ridley Scott\n3 Alien has_tags space\n\n"
    "1 Good Morning, Miss Dove directed_by Henry Koster\n2 Good Morning, Miss Dove has_genre Drama\n\n"
    "1 Directed by John Ford directed_by Peter Bogdanovich\n2 Directed by John Ford written_by Peter Bogdanovich\n"
)
ENTITIES = "Alien\nRidley Scott\nDan O'Bannon\nspace\nGood Morning, Miss Dove\nHenry Koster\nDrama\n"
DIALOGUES = (
    "1 I liked Alien. I'm looking for a Drama movie.\tGood Morning, Miss Dove\n"
    "2 who directed that?\tHenry Koster\n"
    "3 I prefer space movies.\tAlien, Heat\n"
)


@pytest.fixture
def kb(save):
    save("entities.txt", ENTITIES)
    return save("movie_kb.txt", FACTS)


def test_exchanges_become_examples(save, cli, kb, tmp_path):
    code, out, _ = cli("import", "mdd", save("task3_qarecs_dev.txt", DIALOGUES), "--kb", kb, "--out", tmp_path / "out")
    assert (code, out) == (0, f"{tmp_path / 'out' / 'task_3' / 'dev'}\n")
    task = load_selection_task(tmp_path / "out" / "task_3" / "dev")
    assert task.options["id"].to_list()[:7] == ENTITIES.split("\n")[:7]
    assert task.options["id"].to_list()[-1] == "Heat"  # an answer that no list has
    assert task.examples["turns"].list.len().to_list() == [1, 3, 5]
    third = [(turn["speaker"], turn["text"]) for turn in task.examples["turns"][2]]
    assert third[1:] == [
        ("model", "Good Morning, Miss Dove"), ("user", "who directed that?"),
        ("model", "Henry Koster"), ("user", "I prefer space movies."),
    ]  # fmt: skip
    truth = task.truth()
    assert truth.correct["option"].to_list() == ["Good Morning, Miss Dove", "Henry Koster", "Alien", "Heat"]
    assert truth.groups["response"].to_list() == [1, 2, 3]
    card = read_card(tmp_path / "out" / "task_3" / "dev")
    assert (card.dataset, card.subtask, card.split, card.examples) == ("films", 3, "dev", 3)
    known = KnowledgeBase(task.options["id"].to_list(), read_films(task.knowledge))
    assert known.objects("Alien", "written_by") == ["Dan O'Bannon", "Ridley Scott"]


def test_what_movie_dialog_cannot_say_is_not_exported(save, cli, kb, tmp_path):
    cli("import", "mdd", save("task3_qarecs_dev.txt", DIALOGUES), "--kb", kb, "--out", tmp_path / "in")
    folder, out = tmp_path / "in" / "task_3" / "dev", tmp_path / "official"
    table = pl.read_parquet(folder / "examples.parquet")
    table.with_columns(correct=pl.lit(None, table.schema["correct"])).write_parquet(folder / "examples.parquet")
    code, _, err = cli("export", folder, "--out", out)
    told = f"example {table['id'][0]}: correct: has no answer, which Movie Dialog's files name"
    assert (code, err) == (2, f"error: {folder / 'examples.parquet'}: {told}\n")
    card = folder / "task.yaml"
    card.write_text(card.read_text().replace("subtask: 3", "subtask: 9"))
    assert cli("export", folder, "--out", out)[::2] == (2, f"error: {card}: subtask: is 9; expected 1 to 5\n")
    assert not out.exists()


def test_discussions_choose_from_the_candidates_and_their_own_reply(save, cli, kb, tmp_path):
    talk = (
        "1 Alien is great, I think.\tYes, Ridley Scott is\n2 why?\tNo idea\n\n"
        "1 Seen it?\tA wrong one\n2 And?\tgood\n3 x\ty\n4 z\tw\n"
    )
    files = (save("task4_reddit_dev.txt", talk), save("task4_reddit_cand-valid.txt", "1 A wrong one\n\n1 Another\n\n"))
    code, _, err = cli("import", "mdd", *files, "--kb", kb, "--out", tmp_path / "out")
    assert (code, err) == (0, "")
    folder = tmp_path / "out" / "task_4" / "dev"
    task = load_selection_task(folder)
    texts = task.options["text"].to_list()
    assert [[texts[row] for row in task.candidates(number)] for number in range(3)] == [
        ["A wrong one", "Another", "Yes, Ridley Scott is"],
        ["A wrong one", "Another", "No idea"],
        ["A wrong one", "Another"],
    ]
    assert task.groups["response"].to_list() == [1, 2, 1, 2, 3, 3]
    assert task.groups["entities"].to_list() == ["matched", *["other"] * 5]

    def score(option):
        run = pl.DataFrame({"example": task.examples["id"], "option": [task.options["id"][option]] * 6, "score": 1.0})
        run.write_parquet(tmp_path / "run.parquet")
        return cli("score", folder, tmp_path / "run.parquet", "--measure", "hits@1", "--json")

    assert score(0)[0] == 0
    code, _, err = score(2)
    assert (code, "is not one of the example's options" in err) == (2, True)


def test_without_candidates_all_replies_are_the_pool(save, cli, kb, tmp_path):
    cli(
        "import",
        "mdd",
        save("talk_train.txt", "1 a\tb, c\n2 d\te\n"),
        "--task",
        "4",
        "--kb",
        kb,
        "--out",
        tmp_path / "o",
    )
    task = load_selection_task(tmp_path / "o" / "task_4" / "train")
    assert task.options["text"].to_list() == ["b, c", "e"]
    assert task.candidates(0).tolist() == [0, 1]


def test_files_say_what_they_are(save, complaint):
    exchanges, candidates = save("task1_qa_train.txt", "1 a\tb\n"), save("task4_cand-test.txt", "1 a\n")
    sources, found = sort_files([candidates, exchanges])
    assert [(s.path, s.task, s.split) for s in sources] == [(exchanges, 1, "train")]
    assert found == {"test": candidates}
    assert complaint(sort_files, [save("a.txt", "1 a\tb\n")]).startswith("a.txt: the name does not say of which task")
    assert complaint(sort_files, [candidates]).startswith("task4_cand-test.txt: holds no TAB, so candidates alone;")
    assert complaint(sort_files, [save("task1.txt", "")]) == "task1.txt: is empty"
    expected = "holds no TAB; expected lines of a number, a message, a TAB and the answers"
    assert complaint(sort_files, [exchanges, save("task2.txt", "1 a\n")]) == f"task2.txt: {expected}"
    assert (
        complaint(list, read_candidates(save("c", "1 a\n\nb\n"))) == "c: line 3: expected a number, a space and a reply"
    )


def test_an_empty_file_leaves_nothing(save, cli, kb, tmp_path):
    path = save("task1_qa_dev.txt", "\n\t\n")
    code, _, err = cli("import", "mdd", path, "--kb", kb, "--out", tmp_path / "o")
    assert (code, err) == (2, f"error: {path}: holds no exchange with an answer\n")
    assert not list((tmp_path / "o").rglob("*.parquet"))


def test_answers_that_are_no_entities_are_counted(save, cli, kb, tmp_path):
    path = save("task1_qa_dev.txt", "1 who directed Alien?\tRidley Scott, Nobody\n1 who wrote Alien?\tNobody\n")
    code, _, err = cli("import", "mdd", path, "--kb", kb, "--out", tmp_path / "o")
    assert (code, err) == (
        0, f"note: {path}: 1 answer not among the entities, such as 'Nobody'; added to the options\n"
    )  # fmt: skip
    assert load_selection_task(tmp_path / "o" / "task_1" / "dev").options["id"].to_list()[-1] == "Nobody"
    path.write_text("1 who directed Alien?\tRidley Scott\n")
    assert cli("import", "mdd", path, "--kb", kb, "--out", tmp_path / "o")[::2] == (0, "")


def test_question_classes(kb):
    known = read_kb(kb)
    asked = {
        "who directed Alien?": ["Ridley Scott"],
        "who wrote Alien?": ["Dan O'Bannon", "Ridley Scott"],
        "which films did Ridley Scott write?": ["Alien"],
        "which films did Ridley Scott direct?": ["Alien"],
        "who wrote Directed by John Ford?": ["Peter Bogdanovich"],
        "what is about space?": ["Alien"],
        "is it Alien?": ["Henry Koster"],
    }
    parser = Parser(known.entities, known.rank)
    assert question_classes(known, parser, list(asked), list(asked.values())) == [
        "movie to director", "movie to writer", "writer to movie", "director to movie", "movie to writer",
        "tag to movie", None,
    ]  # fmt: skip


def test_entity_match_needs_two_names():
    parser = Parser(["Alien", "Up", "space", "Heat"])
    inputs = ["I saw Alien", "I saw Alien", "Up there, up, up!", "I love space", "Alien"]
    replies = ["Heat is better", "Alien again?", "Heat", "Heat", "so what"]
    assert entity_matches(parser, inputs, replies) == [True, False, False, False, False]
