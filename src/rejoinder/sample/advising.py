"""Generated dialogues between students and advisors about which courses to take.

`courses.json` is the catalogue: a list of records with the fields Area, Category, ClarityRating, ClassSize, Course,
CourseTitle, Credits, Description, EasinessRating, HasDiscussion, HasLab, HelpfulnessRating, Semester, Workload, Year
and Sections (Days, Start, End). `dialogues.json` is a list of records

    {"id": "advising-000001",
     "profile": {"Aggregated": {"Area", "ClassSize", "Workload", "TimeOfDay"},
                 "Courses": {"Prior": [course], "Suggested": [course]}, "Term", "Standing"},
     "messages": [{"speaker": "student" | "advisor", "utterance", "paraphrases": [text]}]}

What the advisor says about a course is in the catalogue, and a suggestion fits the wishes uttered so far.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import msgspec

from rejoinder.corpora.advising import ADVISOR, STUDENT, Utterance
from rejoinder.files import write_atomically
from rejoinder.sample.advising_catalogue import TERMS, Course, Section, catalogue, tables
from rejoinder.sample.grammar import Slots, Template, tidy

__all__ = [
    "AdvisingDialogue",
    "Course",
    "Preferences",
    "Profile",
    "Section",
    "Utterance",
    "catalogue",
    "dialogues",
    "write",
]

SMALL_CLASS = 40
_STANDINGS = ("freshman", "sophomore", "junior", "senior", "graduate student")
_FACTS = ("size", "workload", "time", "lab", "credits", "easy", "helpful")
_COMPLAINTS = {
    "small": "the room was far too crowded",
    "large": "it felt lonely with so few people",
    "less": "it took all my weekends",
    "more": "there was too little to do",
    "morning": "I was tired so late in the day",
    "afternoon": "I hated to get up so early",
}


class Preferences(msgspec.Struct, frozen=True, rename="pascal"):
    """What the student wants; the advisor learns it only from what is said."""

    area: str
    class_size: str
    workload: str
    time_of_day: str


class Record(msgspec.Struct, frozen=True, rename="pascal"):
    """Courses that the student took, and those that usually follow."""

    prior: tuple[str, ...]
    suggested: tuple[str, ...]


class Profile(msgspec.Struct, frozen=True, rename="pascal"):
    """The student's side of the task."""

    aggregated: Preferences
    courses: Record
    term: str
    standing: str


class AdvisingDialogue(msgspec.Struct, frozen=True):
    """One advising session."""

    id: str
    profile: Profile
    utterances: tuple[Utterance, ...] = msgspec.field(name="messages")


def dialogues(size: int, seed: int) -> Iterator[AdvisingDialogue]:
    """Yield sessions about the courses of `catalogue(seed)`."""
    rng = Random(f"advising {seed}")
    courses = catalogue(seed)
    for number in range(1, size + 1):
        profile = _profile(rng, courses)
        session = _Session(rng, profile, courses)
        session.run()
        yield AdvisingDialogue(f"advising-{number:06}", profile, tuple(session.utterances))


def write(out: Path, size: int, seed: int) -> None:
    """Write `courses.json` and `dialogues.json`, the latter record by record."""
    with write_atomically(out / "courses.json") as file:
        file.write(msgspec.json.format(msgspec.json.encode(catalogue(seed)), indent=1) + b"\n")
    encoder = msgspec.json.Encoder()
    with write_atomically(out / "dialogues.json") as file:
        for number, dialogue in enumerate(dialogues(size, seed)):
            file.write((b",\n" if number else b"[\n") + encoder.encode(dialogue))
        file.write(b"\n]\n" if size else b"[]\n")


def _profile(rng: Random, courses: Sequence[Course]) -> Profile:
    level, term = rng.randint(1, 5), rng.choice(TERMS)
    wants = _preferences(rng, courses)
    earlier = [course.course for course in courses if course.level < max(2, level)]
    prior = rng.sample(earlier, k=2 + 3 * level)
    near = [c for c in courses if abs(c.level - level) <= 2 and c.semester == term and c.course not in prior]
    fitting = [course.course for course in near if course.area == wants.area]
    others = [course.course for course in near if course.area != wants.area]
    suggested = rng.sample(fitting, k=min(7, len(fitting))) + rng.sample(others, k=5)
    rng.shuffle(suggested)
    return Profile(wants, Record(tuple(prior), tuple(suggested)), term, _STANDINGS[level - 1])


def _preferences(rng: Random, courses: Sequence[Course]) -> Preferences:
    area = rng.choice(sorted({course.area for course in courses}))
    size, workload = rng.choice(("small", "large")), rng.choice(("less", "more"))
    return Preferences(area, size, workload, rng.choice(("morning", "afternoon")))


class _Session:
    """A session being written: what was said, what the advisor knows, which course is talked about."""

    def __init__(self, rng: Random, profile: Profile, courses: Sequence[Course]) -> None:
        self.rng, self.profile = rng, profile
        self.by_code = {course.course: course for course in courses}
        self.options = [self.by_code[code] for code in profile.courses.suggested]
        self.known: set[str] = set()
        self.pending: tuple[str, ...] = ()
        self.utterances: list[Utterance] = []
        self.slots = Slots(rng, {}, {}, {})
        self.slots |= {"term": profile.term, "standing": profile.standing, "area": profile.aggregated.area}

    def run(self) -> None:
        """Talk from the greeting to the farewell."""
        self.say(STUDENT, "greet")
        if self.rng.random() < 0.5:
            self.talk_prior()
        self.say(ADVISOR, "ask_area")
        self.say(STUDENT, "give_area")
        self.options = [course for course in self.options if course.area == self.profile.aggregated.area]
        length = self.rng.randint(7, 15)
        self.choose(length)
        if length < 10 and len(self.options) > 2:
            self.say(STUDENT, "another")
            self.choose(len(self.utterances) + 4)
        self.say(STUDENT, "thanks")
        self.say(ADVISOR, "welcome")

    def talk_prior(self) -> None:
        """Speak of a course already taken: the complaint gives a wish away."""
        course = self.by_code[self.rng.choice(self.profile.courses.prior)]
        want = self.rng.choice(("size", "workload", "time"))
        self.known.add(want)
        self.slots |= {"p": course.course, "ptitle": course.course_title}
        self.slots["complaint"] = _COMPLAINTS[self.want(want)]
        self.say(ADVISOR, "ask_prior")
        self.say(STUDENT, "answer_prior")

    def choose(self, length: int) -> None:
        """Suggest two courses and discuss them until the student takes one."""
        first, second = sorted(self.options, key=self.misfits)[:2]
        self.mention("a", first)
        self.mention("b", second)
        self.say(ADVISOR, "suggest")
        course = self.discuss(self.rng.choice((first, second)), length)
        self.mention("a", course)
        self.say(STUDENT, *self.pending, "choose")
        self.say(ADVISOR, "confirm")
        self.pending = ()
        self.options.remove(course)

    def discuss(self, course: Course, length: int) -> Course:
        """Ask about courses, one fact at a time, and return the one that the student settles on."""
        self.introduce(course)
        facts = self.rng.sample(_FACTS, k=len(_FACTS))
        while facts and len(self.utterances) < length:
            fact = facts.pop()
            self.say(STUDENT, *self.pending, f"ask_{fact}")
            self.say(ADVISOR, f"answer_{fact}")
            self.pending = ("like",)
            if fact in ("size", "workload", "time") and not self.suits(course, fact):
                course = self.replace(course, fact)
                self.introduce(course)
        return course

    def introduce(self, course: Course) -> None:
        """Let the student ask what a course is about."""
        self.mention("a", course)
        self.say(STUDENT, *self.pending, "ask_about")
        self.say(ADVISOR, "describe")
        self.pending = ()

    def replace(self, course: Course, fact: str) -> Course:
        """Let the student object and the advisor offer what fits the wishes heard so far."""
        self.known.add(fact)
        self.slots["want"] = self.want(fact)
        self.say(STUDENT, f"prefer_{fact}")
        other = min((option for option in self.options if option is not course), key=self.misfits)
        self.mention("b", other)
        self.say(ADVISOR, f"alternative_{fact}" if self.suits(other, fact) else "no_alternative")
        self.pending = ()
        return other

    def misfits(self, course: Course) -> int:
        """Count the known wishes that a course does not meet."""
        return sum(not self.suits(course, fact) for fact in self.known)

    def want(self, fact: str) -> str:
        """Return the student's wish about a course's size, workload or time."""
        wants = self.profile.aggregated
        return {"size": wants.class_size, "workload": wants.workload, "time": wants.time_of_day}[fact]

    def suits(self, course: Course, fact: str) -> bool:
        """Tell whether a course meets the student's wish."""
        offered = {
            "size": "small" if course.class_size < SMALL_CLASS else "large",
            "workload": "less" if course.workload < 3 else "more",
            "time": "morning" if course.sections[0].start < "12:00" else "afternoon",
        }
        return offered[fact] == self.want(fact)

    def mention(self, name: str, course: Course) -> None:
        """Let the slots that begin with `name` speak of this course."""
        self.slots |= {name + key: value for key, value in _facts(course).items()}

    def say(self, speaker: str, *intents: str) -> None:
        """Add an utterance of one or two intents, with every other wording of the same as a paraphrase."""
        phrases = [self.rng.sample(tables().phrases[intent], k=len(tables().phrases[intent])) for intent in intents]
        texts = dict.fromkeys(self.word(parts) for parts in zip(*phrases, strict=True))
        text, *paraphrases = texts
        self.utterances.append(Utterance(speaker, text, tuple(paraphrases)))

    def word(self, parts: tuple[Template, ...]) -> str:
        """Phrase the parts one after the other."""
        text = tidy(" ".join([self.slots.fill(part) for part in parts]))
        return text[0].upper() + text[1:]


def _facts(course: Course) -> dict[str, str]:
    section = course.sections[0]
    return {
        "": course.course,
        "title": course.course_title,
        "desc": course.description,
        "words": course.words,
        "size": str(course.class_size),
        "sizeword": "small" if course.class_size < SMALL_CLASS else "large",
        "work": str(course.workload),
        "workword": _grade(course.workload, "light", "moderate", "heavy"),
        "days": " and ".join(section.days),
        "start": section.start,
        "end": section.end,
        "labyes": "Yes" if course.has_lab else "No",
        "labsome": "a" if course.has_lab else "no",
        "labword": "part" if course.has_lab else "not part",
        "credits": str(course.credits),
        "easy": str(course.easiness_rating),
        "easyword": _grade(course.easiness_rating, "hard", "fair", "easy"),
        "help": str(course.helpfulness_rating),
        "clear": str(course.clarity_rating),
        "semester": course.semester,
        "category": course.category,
    }


def _grade(value: float, low: str, middle: str, high: str) -> str:
    return low if value < 2.5 else high if value > 3.5 else middle
