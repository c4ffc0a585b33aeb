"""Advising dialogues with paraphrases, student profiles and course records, as JSON.

`dialogues.json`: a list of

    {"id": text, "profile": {"Aggregated": preferences, "Courses": {"Prior", "Suggested"}, "Term", "Standing", ...},
     "messages": [{"speaker": "student" | "advisor", "utterance": text, "paraphrases": [text, ...]}, ...]}

`courses.json`: a list of course records: Course, CourseTitle, Description, and whatever else is known of it (Area,
Category, ClarityRating, ClassSize, Credits, EasinessRating, HasDiscussion, HasLab, HelpfulnessRating, Semester,
Workload, Year, Sections).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from rejoinder.files import BadInputError
from rejoinder.records import read_json_records

STUDENT, ADVISOR = "student", "advisor"
PREFERENCES = "Aggregated"
"""The part of a profile that only the student knows."""


class Utterance(msgspec.Struct, frozen=True):
    """What somebody said, and other ways to say the same."""

    speaker: str
    text: str = msgspec.field(name="utterance")
    paraphrases: tuple[str, ...] = ()

    @property
    def ways(self) -> tuple[str, ...]:
        """Return all different ways to say it, the original first."""
        return tuple(dict.fromkeys((self.text, *self.paraphrases)))


class AdvisingRecord(msgspec.Struct, frozen=True):
    """One session of a student with an advisor."""

    id: str
    utterances: tuple[Utterance, ...] = msgspec.field(name="messages")
    profile: dict[str, Any] = {}

    @property
    def answers(self) -> list[int]:
        """Return the places of the advisor's utterances that follow one of the student's."""
        pairs = enumerate(zip(self.utterances, self.utterances[1:], strict=False), 1)
        return [place for place, (asked, said) in pairs if (asked.speaker, said.speaker) == (STUDENT, ADVISOR)]


def read_advising(path: Path) -> Iterator[AdvisingRecord]:
    """Yield checked sessions."""
    seen: dict[str, int] = {}
    for number, record in read_json_records(path, AdvisingRecord):
        place = f"record {number} (id {record.id})"
        if seen.setdefault(record.id, number) != number:
            raise BadInputError(path, f"duplicate id, first used by record {seen[record.id]}", place, "id")
        for turn, utterance in enumerate(record.utterances):
            if utterance.speaker not in (STUDENT, ADVISOR):
                problem = f"{utterance.speaker!r}; expected {STUDENT} or {ADVISOR}"
                raise BadInputError(path, problem, place, f"messages[{turn}].speaker")
        yield record


def without_preferences(profile: dict[str, Any]) -> dict[str, Any]:
    """Return what an advisor may know of a student."""
    return {key: value for key, value in profile.items() if key != PREFERENCES}


def read_courses(path: Path) -> pl.DataFrame:
    """Read course records as pages of knowledge: titled by the course, a line for each field."""
    pages = []
    for number, course in read_json_records(path, dict[str, Any]):
        if not isinstance(course.get("Course"), str):
            raise BadInputError(path, "expected the course's name", f"record {number}", "Course")
        lines = [f"{key}: {_plain(value)}" for key, value in course.items()]
        pages.append((course["Course"], "\n".join(lines)))
    return pl.DataFrame(pages, schema={"title": pl.String, "text": pl.String}, orient="row")


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_plain(part) for part in value)
    if isinstance(value, dict):
        return " ".join(_plain(part) for part in value.values())
    return str(value)
