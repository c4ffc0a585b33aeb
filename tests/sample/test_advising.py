import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

import msgspec
import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from rejoinder.sample import advising
from rejoinder.sample.advising import ADVISOR, STUDENT, AdvisingDialogue, Course

CODE = re.compile(r"\b[A-Z]{3} \d{3}\b")
FIELDS = {"Area", "Category", "ClarityRating", "ClassSize", "Course", "CourseTitle", "Credits", "Description"}
FIELDS |= {"EasinessRating", "HasDiscussion", "HasLab", "HelpfulnessRating", "Semester", "Workload", "Year", "Sections"}


@pytest.fixture(scope="module")
def sessions() -> list[AdvisingDialogue]:
    return list(advising.dialogues(600, seed=1))


@pytest.fixture(scope="module")
def courses() -> dict[str, Course]:
    return {course.course: course for course in advising.catalogue(1)}


def answers(sessions: list[AdvisingDialogue], question: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The course asked about and every wording of the answer, for questions with these words."""
    for session in sessions:
        for asked, said in zip(session.utterances, session.utterances[1:], strict=False):
            wordings = (asked.text, *asked.paraphrases)
            if asked.speaker == STUDENT and any(question in wording for wording in wordings):
                yield CODE.findall(asked.text)[-1], (said.text, *said.paraphrases)


def test_the_seed_decides_every_byte(tmp_path: Path) -> None:
    for name, seed in (("one", 3), ("two", 3), ("other", 4)):
        advising.write(tmp_path / name, 30, seed)
    for file in ("courses.json", "dialogues.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
        assert (tmp_path / "one" / file).read_bytes() != (tmp_path / "other" / file).read_bytes()


def test_a_longer_run_starts_with_a_shorter_one() -> None:
    assert list(advising.dialogues(10, 5)) == list(islice(advising.dialogues(10**9, 5), 10))


def test_files_have_the_documented_form(tmp_path: Path) -> None:
    advising.write(tmp_path, 25, seed=1)
    catalogue = msgspec.json.decode((tmp_path / "courses.json").read_bytes())
    assert [set(course) for course in catalogue] == [FIELDS] * len(catalogue)
    assert set(catalogue[0]["Sections"][0]) == {"Days", "Start", "End"}
    records = msgspec.json.decode((tmp_path / "dialogues.json").read_bytes())
    assert len({record["id"] for record in records}) == 25
    assert set(records[0]) == {"id", "profile", "messages"}
    assert set(records[0]["profile"]) == {"Aggregated", "Courses", "Term", "Standing"}
    assert set(records[0]["messages"][0]) == {"speaker", "utterance", "paraphrases"}


def test_files_read_back_as_what_was_generated(tmp_path: Path) -> None:
    advising.write(tmp_path, 5, seed=1)
    back = msgspec.json.decode((tmp_path / "dialogues.json").read_bytes(), type=list[AdvisingDialogue])
    assert back == list(advising.dialogues(5, seed=1))


def test_no_dialogues_make_an_empty_list(tmp_path: Path) -> None:
    advising.write(tmp_path, 0, seed=1)
    assert msgspec.json.decode((tmp_path / "dialogues.json").read_bytes()) == []


def test_the_catalogue_is_varied_and_sound(courses: dict[str, Course]) -> None:
    assert len(courses) == len(advising.catalogue(1)) >= 150
    assert len({course.area for course in courses.values()}) >= 10
    for course in courses.values():
        assert all(section.start < section.end for section in course.sections)
        assert all(1 <= value <= 5 for value in (course.workload, course.easiness_rating, course.clarity_rating))
        assert all(word in course.description for word in course.words.split(", "))


def test_speakers_take_turns_and_the_advisor_has_the_last_word(sessions: list[AdvisingDialogue]) -> None:
    for session in sessions:
        speakers = [said.speaker for said in session.utterances]
        assert speakers == [STUDENT, ADVISOR] * (len(speakers) // 2)
    assert 17 < np.mean([len(session.utterances) for session in sessions]) < 20


def test_every_utterance_has_five_other_wordings(sessions: list[AdvisingDialogue]) -> None:
    for session in sessions:
        for said in session.utterances:
            wordings = {said.text, *said.paraphrases}
            assert len(wordings) == 1 + len(said.paraphrases) >= 6
            assert not any(set("{}[]|<>") & set(text) for text in wordings), wordings


def test_paraphrases_speak_of_the_same_course(sessions: list[AdvisingDialogue]) -> None:
    for session in sessions[:200]:
        for said in session.utterances:
            named = [frozenset(CODE.findall(text)) for text in (said.text, *said.paraphrases)]
            assert len({codes for codes in named if codes}) <= 1, said


def test_the_class_size_is_the_catalogue_s(sessions: list[AdvisingDialogue], courses: dict[str, Course]) -> None:
    seen = 0
    for code, wordings in answers(sessions, "the class size of"):
        for text in wordings:
            assert re.findall(r"\d+", CODE.sub("", text)) == [str(courses[code].class_size)], text
            seen += 1
    assert seen > 500


def test_times_credits_and_labs_are_the_catalogue_s(
    sessions: list[AdvisingDialogue], courses: dict[str, Course]
) -> None:
    for code, wordings in answers(sessions, "When does"):
        assert all(courses[code].sections[0].start in text for text in wordings)
    for code, wordings in answers(sessions, "How many credits is"):
        assert all(re.search(rf"\b{courses[code].credits}\b", text) for text in wordings)
    for code, wordings in answers(sessions, "have a lab?"):
        assert any(text.startswith("Yes") for text in wordings) == courses[code].has_lab


def test_suggestions_come_from_the_profile(sessions: list[AdvisingDialogue], courses: dict[str, Course]) -> None:
    for session in sessions:
        wants, record = session.profile.aggregated, session.profile.courses
        assert not set(record.prior) & set(record.suggested)
        about = {code for said in session.utterances for code in CODE.findall(said.text)} - set(record.prior)
        assert about <= set(record.suggested)
        assert {courses[code].area for code in about} == {wants.area}
        assert {courses[code].semester for code in about} == {session.profile.term}


def test_an_objection_brings_a_course_that_fits(sessions: list[AdvisingDialogue], courses: dict[str, Course]) -> None:
    seen = []
    for session in sessions:
        wanted = session.profile.aggregated.class_size
        for objected, said in zip(session.utterances, session.utterances[1:], strict=False):
            if f"I learn better in {wanted} classes." in (objected.text, *objected.paraphrases):
                (code,) = {code for text in (said.text, *said.paraphrases) for code in CODE.findall(text)}
                seen.append((courses[code].class_size < advising.SMALL_CLASS) == (wanted == "small"))
    assert len(seen) > 50
    # a few students want what no remaining course of the area offers
    assert np.mean(seen) > 0.8


def recall(scores: np.ndarray, rng: Random, k: int) -> float:
    """Recall at k with 99 other replies drawn at random; a tie counts against the right one."""
    size = len(scores)
    samples = [rng.sample([j for j in range(size) if j != i], 99) for i in range(size)]
    return float(np.mean([np.sum(scores[i, others] >= scores[i, i]) < k for i, others in enumerate(samples)]))


def test_replies_can_be_learnt_but_not_found_by_shared_words_alone() -> None:
    rng = Random(7)
    triples = []
    for session in advising.dialogues(1_500, 1):
        cut = rng.randrange(1, len(session.utterances), 2)
        texts = [said.text for said in session.utterances]
        triples.append((" ".join(texts[:cut]), texts[cut - 1], texts[cut]))
    vectors = TfidfVectorizer(sublinear_tf=True).fit([text for triple in triples for text in triple])
    contexts, questions, replies = (vectors.transform(side) for side in zip(*triples, strict=True))
    train, test = slice(0, 1_100), slice(1_100, 1_500)
    overlap = (contexts[test] @ replies[test].T).toarray()
    similar = (questions[test] @ questions[train].T).toarray() ** 3
    learnt = similar @ (replies[train] @ replies[test].T).toarray()
    assert 0.08 < recall(overlap, Random(1), 1) < 0.4
    assert recall(overlap, Random(1), 10) + 0.1 < recall(learnt, Random(1), 10) < 0.95
