import pytest

from rejoinder.files import BadInputError
from rejoinder.tasks.build import Cut, build_task
from rejoinder.tasks.load import load_task, load_tasks
from rejoinder.tasks.truth import read_truth


def test_a_folder_of_several_tasks_says_which_there_are(tmp_path):
    cut = Cut((("asker", "no sound"),), ("check alsamixer",))
    for split in ("train", "dev"):
        build_task([cut], [("try grub",)], candidates=2).save(tmp_path / split)
    for read in (load_task, read_truth):
        with pytest.raises(BadInputError, match=r"is no task but holds such \(dev, train\); name one"):
            read(tmp_path)
    assert load_task(tmp_path / "dev").examples.height == 1


def test_an_empty_folder_is_no_task(tmp_path):
    with pytest.raises(BadInputError, match=r"options\.parquet"):
        load_task(tmp_path)


def test_a_pool_beside_options_of_their_own_is_refused(save):
    example = {"example-id": 1, "messages-so-far": [{"speaker": "a", "utterance": "hi"}]}
    pool = save("replies.txt", "x\thello\n")
    bare = save("questions.json", [example])
    assert load_task(bare, pool).examples["options"].null_count() == 1
    own = save("chats.json", [example | {"options-for-next": [{"candidate-id": "a", "utterance": "hello"}]}])
    with pytest.raises(BadInputError, match=r"replies\.txt: has no use: no example of .*chats\.json chooses"):
        load_task(own, pool)
    lists, pooled = load_tasks([own, bare], pool)  # as in DSTC7: train has lists, subtask 2's dev the pool
    assert (lists.examples["options"].null_count(), pooled.examples["options"].null_count()) == (0, 1)
