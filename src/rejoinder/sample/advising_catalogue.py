"""A made-up university's course catalogue."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

import msgspec

from rejoinder.sample.grammar import Template, compiled

_DAYS = (("Monday", "Wednesday"), ("Tuesday", "Thursday"), ("Wednesday", "Friday"), ("Monday", "Thursday"), ("Friday",))
_CATEGORIES = ("core", "elective", "breadth", "upper-level technical")
_YEAR = 2018
TERMS = ("fall", "winter")


class Section(msgspec.Struct, frozen=True, rename="pascal"):
    """When a course meets; times are HH:MM."""

    days: tuple[str, ...]
    start: str
    end: str


class Course(msgspec.Struct, frozen=True, rename="pascal"):
    """One course as the catalogue lists it; ratings and workload go from 1 to 5."""

    area: str
    category: str
    clarity_rating: float
    class_size: int
    course: str
    course_title: str
    credits: int
    description: str
    easiness_rating: float
    has_discussion: bool
    has_lab: bool
    helpfulness_rating: float
    semester: str
    workload: float
    year: int
    sections: tuple[Section, ...]

    @property
    def level(self) -> int:
        """The year of study that the course is meant for."""
        return int(self.course.split()[1][0])

    @property
    def words(self) -> str:
        """The keywords that the description is built around."""
        return topic_words()[self.course_title]


class Department(msgspec.Struct, frozen=True):
    """A department's code, its area and the keywords of its topics."""

    code: str
    area: str
    topics: dict[str, str]


class Tables(msgspec.Struct, frozen=True):
    """Everything that `advising_tables.json` holds."""

    departments: tuple[Department, ...]
    titles: dict[str, tuple[str, ...]]
    descriptions: tuple[str, ...]
    phrases: dict[str, tuple[Template, ...]]


@cache
def tables() -> Tables:
    """Read the tables once."""
    source = Path(__file__).with_name("advising_tables.json").read_bytes()
    return msgspec.json.decode(source, type=Tables, dec_hook=compiled)


@cache
def topic_words() -> dict[str, str]:
    """Map every possible title to the keywords of its topic."""
    known = tables()
    patterns = [pattern for level in known.titles.values() for pattern in level]
    topics = [topic for department in known.departments for topic in department.topics.items()]
    return {pattern.format(topic=topic): words for pattern in patterns for topic, words in topics}


def catalogue(seed: int) -> list[Course]:
    """Return the courses on offer, in order of department and number."""
    rng = Random(f"catalogue {seed}")
    return [course for department in tables().departments for course in _department(department, rng)]


def _department(department: Department, rng: Random) -> Iterator[Course]:
    for level in range(1, 6):
        topics = sorted(rng.sample(list(department.topics.items()), k=4))
        numbers = sorted(rng.sample(range(100), k=len(topics)))
        semesters = rng.sample(TERMS * 2, k=4)
        for (topic, words), number, semester in zip(topics, numbers, semesters, strict=True):
            yield _course(department, topic, words, f"{department.code} {level}{number:02}", semester, rng)


def _course(department: Department, topic: str, words: str, code: str, semester: str, rng: Random) -> Course:
    level = code.split()[1][0]
    known = tables()
    return Course(
        area=department.area,
        category=rng.choice(_CATEGORIES),
        clarity_rating=_rating(rng),
        class_size=_size(int(level), rng),
        course=code,
        course_title=rng.choice(known.titles[level]).format(topic=topic),
        credits=rng.choice((2, 3, 3, 4, 4, 5)),
        description=rng.choice(known.descriptions).format(words=words),
        easiness_rating=_rating(rng),
        has_discussion=rng.random() < 0.5,
        has_lab=rng.random() < 0.4,
        helpfulness_rating=_rating(rng),
        semester=semester,
        workload=_rating(rng),
        year=_YEAR,
        sections=tuple(_section(rng) for _ in range(rng.choice((1, 1, 2)))),
    )


def _rating(rng: Random) -> float:
    return rng.randint(10, 50) / 10


def _size(level: int, rng: Random) -> int:
    # classes shrink towards the end of a degree
    return max(8, round(rng.lognormvariate(4.8 - 0.35 * level, 0.6)))


def _section(rng: Random) -> Section:
    start = rng.choice((8, 9, 10, 11, 13, 14, 15, 16)) * 60 + rng.choice((0, 30))
    return Section(rng.choice(_DAYS), _clock(start), _clock(start + rng.choice((50, 80, 110))))


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"
