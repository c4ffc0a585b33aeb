"""What leaderboards and final tables are made of."""

from rejoinder.board import standings
from rejoinder.board.models import Track


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
