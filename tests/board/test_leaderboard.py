import re

from rejoinder.board.client import _table
from rejoinder.board.leaderboard import lines_of
from rejoinder.board.models import Competition, Track
from rejoinder.board.web.templates import make_templates


def test_distances_as_logarithms():
    """Of a logarithm of a distance more is better, so what is better stands right, as the number says."""
    measures = [{"name": "NMD(A)", "sentence": "how far off", "citation": "", "higher": False}]
    rows = {
        "team:A": {"score": 0.25, "low": 0.2, "high": 0.3},
        "uniform": {"score": 0.5, "low": 0.4, "high": 0.6},
    }

    def shown(log2):
        rules = Competition(digits=2, log2=log2)
        track = Track(competition=rules, measures=measures)
        lines = lines_of(track, {"measures": [{"name": "NMD(A)", "rows": rows}]}, "NMD(A)")
        macros = make_templates().get_template("macros.html").module
        page = macros.standings(lines, track, "NMD(A)", "")
        labels = set(re.findall(r'data-label="(.*?)"', page))
        return lines[0].scores["NMD(A)"], re.findall(r'(?:aria-sort|img" aria-label)="(.*?)"', page), labels

    plain, log2 = shown(False), shown(True)
    assert (plain[2], log2[2]) == ({"NMD(A) ↓"}, {"NMD(A) ↑"})  # on a phone, where there is no heading
    assert (plain[0].text, plain[0].interval, plain[1]) == ("0.25", "0.20 – 0.30", ["ascending", "lower is better"])
    assert (log2[0].text, log2[0].interval, log2[1]) == ("2.00", "1.74 – 2.32", ["descending", "higher is better"])
    assert [round(low + high) for low, high in zip(plain[0].bar, reversed(log2[0].bar), strict=True)] == [100] * 3


def test_equal_scores_have_no_interval():
    track = Track(competition=Competition(digits=2, log2=False))
    rows = {
        "team:A": {"score": 1.0, "low": None, "high": None},
        "uniform": {"score": 0.5, "low": 0.4, "high": 0.6},
    }
    alone, other = lines_of(track, {"measures": [{"name": "R@1", "rows": rows}]}, "R@1")
    assert (alone.scores["R@1"].interval, other.scores["R@1"].interval) == ("–", "0.40 – 0.60")
    low, score, high = alone.scores["R@1"].bar
    assert low == score == high
    scores = {"R@1": {"score": 1.0, "low": None, "high": None}}
    table = _table({"scores": scores, "runs_left": 1, "file": "run.json", "number": 1})
    assert table.rows[0][1].plain() == "1 [–]"
