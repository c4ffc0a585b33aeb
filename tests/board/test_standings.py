"""What leaderboards and final tables are made of."""

from datetime import timedelta

import pytest

from rejoinder.board import standings
from rejoinder.board.models import Track, now
from rejoinder.board.scorer_process import UNLIMITED, ScorerDiedError, ScorerProcess


def test_teams_of_equal_scores_stand_in_order_of_their_names(world, make_run):
    track = world.competition()
    names = [f"Team {letter}" for letter in "DBECA"]
    for name in names:
        world.hand_in(world.user(f"of {name}", name), track, make_run(0.5))
    with world.site.database.reading() as session:
        rows = standings._online_rows(session, session.get_one(Track, track.id))
        final = standings._final_rows(session, session.get_one(Track, track.id))
    baselines = ["uniform", "popularity (oracle)"]
    assert [row.name for row in rows] == baselines + [f"team:{name}" for name in sorted(names)]
    assert [row.name for row in final] == baselines + [f"{name}-run1" for name in sorted(names)]


def test_a_track_whose_tables_cannot_be_made_holds_up_no_other(world, make_run, caplog):
    hour = timedelta(hours=1)
    broken, whole = (world.competition(name=name, closes=now() - hour) for name in ("Broken", "Whole"))
    with world.site.database.writing() as session:
        session.get_one(Track, broken.id).measures = [{"name": "NMD(A)"}]  # as if its row had been damaged
    with ScorerProcess(UNLIMITED) as scorer:
        standings.refresh(world.site, scorer)
        standings.finish(world.site, scorer)
        scorer.kill()
        with pytest.raises(ScorerDiedError):
            standings.refresh(world.site, scorer)
    assert [record.getMessage() for record in caplog.records] == [f"the tables of {broken.slug} were not made"] * 2
    with world.site.database.reading() as session:
        found = {id_: session.get_one(Track, id_) for id_ in (broken.id, whole.id)}
        made = {id_: (track.standings is not None, track.final is not None) for id_, track in found.items()}
    assert made == {broken.id: (False, False), whole.id: (True, True)}
