import pytest

from rejoinder.tasks.card import title_of


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("ubuntu/subtask_1/test", "ubuntu/subtask_1/test"),
        ("films/task_3/dev", "films/task_3/dev"),
        ("advising/subtask_4/test_2", "advising/subtask_4/test_2"),
        ("helpdesk", "helpdesk"),
        ("ubuntu/subtask_1/tests-of-mine", "tests-of-mine"),
    ],
)
def test_titles_tell_folders_apart(tmp_path, monkeypatch, path, title):
    (tmp_path / path).mkdir(parents=True)
    assert title_of(tmp_path / path) == title
    monkeypatch.chdir((tmp_path / path).parent)
    assert title_of((tmp_path / path).relative_to((tmp_path / path).parent)) == title


def test_a_file_is_called_by_its_name(save):
    assert title_of(save("test.json", [])) == "test.json"
