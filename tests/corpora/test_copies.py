from rejoinder.corpora.copies import Copies
from rejoinder.corpora.irc import Post


def said(*texts: str, first: int = 0) -> list[Post]:
    return [Post(first + place, 0, "ann", "ann", text, "message") for place, text in enumerate(texts)]


def test_messages_in_a_row_of_five_that_an_earlier_log_has_are_copies():
    copies = Copies()
    assert copies.find(said(*"abcdefg")) == set()
    assert copies.find(said(*"xbcdefy", first=10)) == {11, 12, 13, 14, 15}
    assert copies.find(said(*"wdefyv")) == set()


def test_fewer_in_a_row_and_repetitions_within_a_log_are_no_copies():
    copies = Copies()
    assert copies.find(said(*"hihihihihi")) == set()
    assert copies.find(said(*"abcd")) == set()
    assert copies.find(said(*"abcd")) == set()
    assert copies.find([]) == set()
