"""Run every topic and write what was measured.

python -m benchmarks                                 all topics, to docs/results.md (a few minutes)
python -m benchmarks --out FILE statistics startup   some topics, elsewhere
python -m benchmarks --quick FILE                    tiny sizes, to see that everything runs
"""

import argparse
import importlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.results import Section, to_markdown

TOPICS = ("files", "judgement", "sample", "scoring", "startup", "statistics", "ubuntu")
RESULTS = Path(__file__).parent.parent / "docs" / "results.md"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure Rejoinder beside its peers.")
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=f"which: {', '.join(TOPICS)} (default: all)")
    parser.add_argument("--out", type=Path, help="where to write (default: docs/results.md)")
    parser.add_argument("--quick", type=Path, metavar="OUT", help="tiny sizes, written to OUT")
    chosen = parser.parse_args(arguments)
    unknown = sorted(set(chosen.topics) - set(TOPICS))
    if unknown:
        parser.error(f"no topic {unknown[0]!r}; there are {', '.join(TOPICS)}")
    if chosen.topics and not (chosen.out or chosen.quick):
        parser.error("docs/results.md holds all topics: say with --out where to write some of them")
    return chosen


def measure(topic: str, quick: bool) -> Section:
    print(f"{topic}: measuring", file=sys.stderr, flush=True)
    start = time.perf_counter()
    section = importlib.import_module(f"benchmarks.{topic}").measure(quick)
    print(f"{topic}: done in {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return section


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = parse(arguments)
    quick = chosen.quick is not None
    sections = [measure(topic, quick) for topic in chosen.topics or TOPICS]
    (chosen.quick or chosen.out or RESULTS).write_text(to_markdown(sections, quick), encoding="utf-8")


if __name__ == "__main__":
    main()
