"""How long a fresh process takes to say something."""

from pathlib import Path

from benchmarks.measuring import PYTHON, run_in_turn, summarise
from benchmarks.results import Goal, Section, Table, megabytes, ratio, seconds, timing

GOAL = 0.15
BARE = "python -c pass"
PEER = "ir_measures --help"


def measure(quick: bool) -> Section:
    scripts = Path(PYTHON).parent
    commands = {
        BARE: [PYTHON, "-c", "pass"],
        "rejoinder --help": [scripts / "rejoinder", "--help"],
        "rejoinder --version": [scripts / "rejoinder", "--version"],
        PEER: [scripts / "ir_measures", "--help"],
    }
    usages = run_in_turn(commands, 2 if quick else 10)
    timings = {name: summarise([usage.seconds for usage in taken]) for name, taken in usages.items()}
    bare, peer = timings[BARE].median, timings[PEER].median
    rows = [
        [
            f"`{name}`",
            timing(taken),
            ratio(peer, taken.median),
            f"{(taken.median - bare) * 1e3:.1f} ms",
            megabytes(max(usage.peak for usage in usages[name])),
        ]
        for name, taken in timings.items()
    ]
    goals = [
        Goal(f"`{name}` in {seconds(GOAL)}", seconds(timings[name].median), timings[name].median <= GOAL)
        for name in ("rejoinder --help", "rejoinder --version")
    ]
    header = ("command", "time", f"ratio to `{PEER}`", f"beyond `{BARE}`", "peak memory")
    return Section("Start-up", [Table("Fresh processes", header, rows)], goals)
