import pytest

from rejoinder.corpora.advising import read_advising, read_courses, without_preferences
from rejoinder.sample import advising as sample


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("advising")
    sample.write(out, 12, seed=3)
    return out


def test_the_sample_reads_back(folder):
    records = list(read_advising(folder / "dialogues.json"))
    made = list(sample.dialogues(12, 3))
    assert [record.id for record in records] == [dialogue.id for dialogue in made]
    assert records[4].utterances[2].ways == (made[4].utterances[2].text, *made[4].utterances[2].paraphrases)
    assert all(record.utterances[place].speaker == "advisor" for record in records for place in record.answers)


def test_an_advisor_does_not_know_the_preferences(folder):
    profile = next(iter(read_advising(folder / "dialogues.json"))).profile
    assert set(profile) - set(without_preferences(profile)) == {"Aggregated"}


def test_courses_become_pages(folder):
    pages = read_courses(folder / "courses.json")
    course = sample.catalogue(3)[0]
    text = dict(pages.iter_rows())[course.course]
    assert f"CourseTitle: {course.course_title}" in text
    assert f"ClassSize: {course.class_size}" in text


def test_mistakes_are_named(save, complaint):
    good = {"id": "a", "messages": [{"speaker": "student", "utterance": "hi"}]}
    bad = save("d.json", [good, {**good, "messages": [{"speaker": "dean", "utterance": "hi"}]}])
    assert (
        complaint(lambda: list(read_advising(bad)))
        == "d.json: record 2 (id a): id: duplicate id, first used by record 1"
    )
    bad = save("d.json", [{**good, "messages": [{"speaker": "dean", "utterance": "hi"}]}])
    assert complaint(lambda: list(read_advising(bad))) == (
        "d.json: record 1 (id a): messages[0].speaker: 'dean'; expected student or advisor"
    )
    bad = save("c.json", [{"CourseTitle": "x"}])
    assert complaint(read_courses, bad) == "c.json: record 1: Course: expected the course's name"
