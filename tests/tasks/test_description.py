from rejoinder.tasks.description import describe, overlap


def test_diversity_by_hand():
    found = describe([["a b", "c"], ["a b", "a b", "d e f"]])
    assert found.dialogues == 2
    assert found.utterances_per_dialogue == 5 / 2
    assert found.tokens_per_utterance == (2 + 1 + 2 + 2 + 3) / 5
    assert found.utterances_per_unique_utterance == 5 / 3
    assert found.tokens_per_unique_token == 10 / 6


def test_overlap_finds_the_same_and_the_nearly_same():
    known = ["try sudo apt-get install foo and reboot", "Thanks!", "no idea"]
    new = ["thanks!", "try sudo apt-get install foo and reboot now", "something else entirely", "NO  idea"]
    found = overlap(known, new)
    assert (found.replies, found.same, found.alike) == (4, 2, 3)


def test_nothing_in_common():
    assert overlap(["a b"], ["c d"]).alike == 0
