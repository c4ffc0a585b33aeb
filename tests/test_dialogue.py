import itertools

from hypothesis import given
from hypothesis import strategies as st

from rejoinder.dialogue import Turn, merge_posts


def test_consecutive_posts_of_one_speaker_are_one_turn():
    """The example of DialEval-1, section 2.1: eight posts, three turns."""
    posts = [(speaker, str(number)) for number, speaker in enumerate("CCCHHHCC")]
    turns = merge_posts(posts)
    assert [turn.speaker for turn in turns] == ["C", "H", "C"]
    assert turns[1] == Turn("H", ("3", "4", "5"))
    assert turns[2].text == "6 7"


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.text(max_size=3))))
def test_merging_loses_no_post_and_leaves_no_neighbours_alike(posts):
    turns = merge_posts(posts)
    assert [(turn.speaker, post) for turn in turns for post in turn.posts] == posts
    assert all(first.speaker != second.speaker for first, second in itertools.pairwise(turns))
