"""Run every topic and write what was measured.

python -m benchmarks                       all topics but the slow ones, to docs/results.md (a few minutes)
python -m benchmarks statistics startup    some topics; the others' sections of docs/results.md stay as they are
python -m benchmarks growth                a slow topic: a million messages, most of an hour
python -m benchmarks --quick FILE          tiny sizes, to see that everything runs
"""

import argparse
import importlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.results import Section, to_markdown

TOPICS = (
    "board",
    "files",
    "film_retrieval",
    "films",
    "judgement",
    "rankers_speed",
    "sample",
    "scoring",
    "startup",
    "statistics",
    "ubuntu",
)
SLOW = ("film_systems", "growth", "judges", "judges_speed", "rankers")
RESULTS = Path(__file__).parent.parent / "docs" / "results.md"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure Rejoinder beside its peers.")
    parser.add_argument(
        "topics",
        nargs="*",
        metavar="TOPIC",
        help=f"which: {', '.join(TOPICS + SLOW)} (default: all but {', '.join(SLOW)})",
    )
    parser.add_argument("--out", type=Path, help="where to write (default: docs/results.md)")
    parser.add_argument("--quick", type=Path, metavar="OUT", help="tiny sizes, written to OUT")
    chosen = parser.parse_args(arguments)
    unknown = sorted(set(chosen.topics) - set(TOPICS + SLOW))
    if unknown:
        parser.error(f"no topic {unknown[0]!r}; there are {', '.join(TOPICS + SLOW)}")
    return chosen


def measure(topic: str, quick: bool) -> Section:
    print(f"{topic}: measuring", file=sys.stderr, flush=True)
    start = time.perf_counter()
    section = importlib.import_module(f"benchmarks.{topic}").measure(quick)
    told = (
        f"left out, for it needs {section.needs}" if section.needs else f"done in {time.perf_counter() - start:.0f} s"
    )
    print(f"{topic}: {told}", file=sys.stderr, flush=True)
    return section


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = parse(arguments)
    quick = chosen.quick is not None
    sections = [measure(topic, quick) for topic in chosen.topics or TOPICS]
    out = chosen.quick or chosen.out or RESULTS
    page = out.read_text(encoding="utf-8") if out.exists() else ""
    out.write_text(to_markdown(sections, quick, page), encoding="utf-8")


if __name__ == "__main__":
    main()
