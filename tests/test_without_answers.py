"""Lists of subtask 1 with and without their answers."""

from benchmarks.without_answers import FIFTHS, without_answers

from rejoinder.tasks.build import Cut, build_task


def test_every_list_stands_once_without_its_answer_and_is_as_long_as_before():
    cuts = [Cut((("a", f"question {number}"),), (f"answer {number}",)) for number in range(12)]
    task = build_task(cuts, [cut.replies for cut in cuts], 4, seed=1)
    found = without_answers(task).examples
    assert found["id"].n_unique() == found.height == FIFTHS * 12
    kept = [0] * 12
    for place, (options, correct) in enumerate(found.select("options", "correct").iter_rows()):
        own, right = task.examples.select("options", "correct").row(place % 12)
        assert len(set(options)) == 4
        kept[place % 12] += correct == right and options == own
        if not correct:
            assert not set(options) & set(right)
            assert len(set(options) & set(own)) == 3
    assert kept == [FIFTHS - 1] * 12
