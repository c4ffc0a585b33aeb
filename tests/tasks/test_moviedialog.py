import pytest

from rejoinder.corpora.films import read_entities, split_names
from rejoinder.tasks import moviedialog
from rejoinder.tasks.moviedialog import Exchange, read_exchanges

DIALOGUES = (
    "1 I liked Alien, and Brazil.\tMad Max\n"
    "2 who directed that?\tGeorge Miller, Byron Kennedy\n"
    "\n"
    "1 what now?\tWeekend\r\n"
    "1 again?\tWeekend\t1.0\n"
)


def read(path):
    return list(read_exchanges(path))


@pytest.mark.parametrize("name", ["f.txt", "f.txt.gz"])
def test_exchanges(save, name):
    first, second, third, fourth = read(save(name, DIALOGUES))
    assert first == Exchange("1", 1, (), "I liked Alien, and Brazil.", ("Mad Max",))
    assert second.context == ("I liked Alien, and Brazil.", "Mad Max")
    assert (second.response, second.answers) == (2, ("George Miller", "Byron Kennedy"))
    assert third == Exchange("3", 1, (), "what now?", ("Weekend",))
    assert fourth == Exchange("4", 1, (), "again?", ("Weekend",))


def test_truth(save):
    truth = moviedialog.read_truth(save("f", "\ufeff" + DIALOGUES))
    assert truth.ids.to_list() == ["1", "2", "3", "4"]
    assert truth.correct.rows() == [
        (0, "Mad Max"), (1, "George Miller"), (1, "Byron Kennedy"), (2, "Weekend"), (3, "Weekend")
    ]  # fmt: skip
    assert truth.groups["response"].to_list() == [1, 2, 1, 1]


def test_entities_keep_names_with_commas_whole(save):
    entities = frozenset(read_entities(save("e.gz", "Good Morning, Miss Dove\nA, B, C\nA, B\n\nAlien\n")))
    assert entities == {"Good Morning, Miss Dove", "A, B, C", "A, B", "Alien"}
    assert split_names("Alien, Good Morning, Miss Dove, Heat", entities) == (
        "Alien",
        "Good Morning, Miss Dove",
        "Heat",
    )
    assert split_names("A, B, C, A, B", entities) == ("A, B, C", "A, B")
    assert split_names("Good Morning, Miss Dove", frozenset()) == ("Good Morning", "Miss Dove")


def test_answers_given_twice_count_once():
    assert split_names("Alien, Heat, Alien", frozenset()) == ("Alien", "Heat")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("what?\tAlien", "line 2: expected a number, a space, a message, a TAB and the answers"),
        ("2\twhat?\tAlien", "line 2: expected a number, a space, a message, a TAB and the answers"),
        ("02 what?\tAlien", "line 2: expected a number, a space, a message, a TAB and the answers"),
        ("-1 what?\tAlien", "line 2: expected a number, a space, a message, a TAB and the answers"),
        ("99999999999 what?\tAlien", "line 2: expected a number, a space, a message, a TAB and the answers"),
        ("2 a fact", "line 2: expected a number, a space, a message, a TAB and the answers"),
        ("3 what?\tAlien", "line 2: line number: number 3 after 1"),
        ("2 what?\t", "line 2: answer: an answer is empty in ''"),
        ("2 what?\tAlien, , Heat", "line 2: answer: an answer is empty in 'Alien, , Heat'"),
    ],
)
def test_malformed_lines(save, complaint, line, problem):
    assert complaint(read, save("f", f"1 first?\tHeat\n{line}\n")) == f"f: {problem}"


def test_a_dialogue_starts_anew_after_an_empty_line(save, complaint):
    assert (
        complaint(read, save("f", "1 first?\tHeat\n\n2 what?\tAlien\n")) == "f: line 3: line number: number 2 after 0"
    )


def test_a_file_without_exchanges(save, complaint):
    assert complaint(moviedialog.read_truth, save("f", "\n\n")).startswith("f: holds no exchange")
