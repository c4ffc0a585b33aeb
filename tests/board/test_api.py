"""The API as its OpenAPI description says, under whatever schemathesis thinks of."""

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance


def test_the_api_is_as_described(world, make_server, make_run):
    track, user = world.competition(quota=3), world.user("Anna", "Team A")
    run = world.hand_in(user, track, make_run(0.5))
    known = {"slug": track.competition.slug, "track": track.slug, "run_id": run.id}
    server = make_server(world.site.folder, scorers=1)
    schema = schemathesis.openapi.from_url(f"{server.url}/api/openapi.json")
    headers = world.bearer(user)
    tested = set()
    for found in schema.get_all_operations():
        operation = found.ok()

        @given(case=operation.as_strategy())
        @settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
        def check(case):
            case.call_and_validate(headers=headers)
            if case.path_parameters:  # and once more where there is something
                real = {name: known[name] for name in case.path_parameters}
                case.path_parameters.update(real)
                # any bytes are a file, but few of them a run
                case.call_and_validate(headers=headers, excluded_checks=[positive_data_acceptance])

        check()
        tested.add(operation.label)
    assert len(tested) == 6
    assert server.process.poll() is None


def test_what_is_described(application):
    paths = application.get("/api/openapi.json").json()["paths"]
    assert sorted(paths) == [
        "/api/competitions",
        "/api/competitions/{slug}/{track}/leaderboard",
        "/api/competitions/{slug}/{track}/runs",
        "/api/me",
        "/api/runs/{run_id}",
    ]


def test_a_run_through_the_api(world, application, make_run, bad_run):
    track, user = world.competition(quota=1), world.user("Anna", "Team A")
    headers = world.bearer(user)
    path = f"/api/competitions/{track.competition.slug}/{track.slug}"
    assert application.get("/api/competitions").json()[0]["tracks"][0]["measures"] == ["NMD(A)", "RSNOD(A)"]
    bad = application.post(f"{path}/runs?name=bad.json", content=bad_run, headers=headers)
    assert bad.status_code == 422
    assert bad.json()["detail"].startswith("bad.json: record 7 (id ")
    good = application.post(f"{path}/runs?name=good.json", content=make_run(0.5), headers=headers)
    assert good.status_code == 201
    assert good.json()["runs_left"] == 0
    over = application.post(f"{path}/runs", content=make_run(0.6), headers=headers)
    assert (over.status_code, "used up" in over.json()["detail"]) == (409, True)
    assert application.get(f"/api/runs/{good.json()['id']}", headers=headers).json() == good.json()
    listed = application.get(f"{path}/runs", headers=headers).json()
    assert [run["status"] for run in listed] == ["refused", "scored"]
    world.wait(lambda session: "Team A" in application.get(f"{path}/leaderboard").text)
    board = application.get(f"{path}/leaderboard?by=RSNOD(A)").json()
    assert (board["by"], board["final"]) == ("RSNOD(A)", False)
    assert {line["name"]: line["kind"] for line in board["lines"]}["Team A"] == "team"
    assert application.get(f"{path}/leaderboard?by=F1").status_code == 404
    alone = world.bearer(world.user("Alone"))
    assert application.post(f"{path}/runs", content=b"x", headers=alone).json() == {
        "detail": "make or join a team first"
    }
