from rejoinder.board.client import _table
from rejoinder.board.leaderboard import lines_of
from rejoinder.board.models import Competition, Track


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
