"""The pages as they are without scripts: register, make a team, hand runs in, close, take the tables along."""

import re

import pytest
from sqlalchemy import select

from rejoinder.board.models import Act, Submission, Track, User


@pytest.fixture
def track(world):
    return world.competition(quota=2)


def upload(browser, track, content, name="run.json"):
    path = f"/c/{track.competition.slug}/{track.slug}/runs"
    csrf = browser.token(path)
    return browser.client.post(path, data={"csrf": csrf}, files={"run": (name, content)})


def register(browser, name, team):
    done = browser.post("/register", {"name": name, "password": "correct horse"}, at="/register")
    assert done.status_code == 303
    assert browser.post("/team", {"name": team}, at="/team").status_code == 303
    return browser


def test_a_whole_competition(world, track, browse, make_run, bad_run):
    admin = world.user("Olga", admin=True)
    anna, organiser = register(browse(), "Anna", "Team A"), browse().sign_in(admin.name)
    board = f"/c/{track.competition.slug}/{track.slug}"

    refused = anna.get(upload(anna, track, bad_run, "mistake.json").headers["location"])
    assert "mistake.json: record 7 (id " in refused.text
    assert "probabilities sum to 1.5; expected 1" in refused.text
    assert "You have 2 of 2 runs left" in refused.text

    first = anna.get(upload(anna, track, make_run(0.5)).headers["location"]).text
    assert re.search(r'class="big">0\.\d{4}<', first)
    assert "1 of 2 runs left" in first
    second = anna.get(upload(anna, track, make_run(0.4)).headers["location"]).text
    assert "Scored, but not released" in second
    over = upload(anna, track, make_run(0.9))
    assert over.status_code == 409
    assert "the quota is used up: your team has handed in all 2 runs of this track" in over.text

    world.wait(lambda session: "Team A" in browse().get(board).text)
    assert organiser.post(f"/admin/c/{track.competition.slug}/close").status_code == 303
    assert upload_closed(anna, board).status_code == 409
    world.wait(lambda session: session.get_one(Track, track.id).final)
    final = browse().get(board).text
    assert "Final results" in final
    assert "Team A-run2" in final
    assert "Team A-run3" not in final  # it was neither chosen nor the best
    for name in ("scores.csv", "scores.md", "scores.tex", "significance-NMD(A).tex"):
        table = browse().get(f"{board}/tables/{name}")
        assert table.status_code == 200
        assert "uniform" in table.text
    report = browse().get(f"{board}/report")
    assert "randomised Tukey HSD" in report.text
    assert report.headers["content-security-policy"] == "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    assert browse().get(f"{board}/charts/means.svg").headers["content-type"] == "image/svg+xml"
    with world.site.database.reading() as session:
        assert list(session.scalars(select(Submission.status).order_by(Submission.number))) == [
            "refused",
            "scored",
            "scored",
        ]
        assert "closed a competition" in list(session.scalars(select(Act.what)))


def upload_closed(browser, board):
    return browser.client.post(f"{board}/runs", data={"csrf": browser.token()}, files={"run": ("x", b"x")})


def test_a_run_shows_the_interval_of_the_leaderboard(world, track, browse, make_run):
    anna = register(browse(), "Anna", "Team A")
    run = anna.get(upload(anna, track, make_run(0.5)).headers["location"]).text
    board = f"/c/{track.competition.slug}/{track.slug}"
    world.wait(lambda session: "Team A" in browse().get(board).text)
    interval = re.search(r"0\.\d{4} – 0\.\d{4}", run)[0]
    assert interval in browse().get(board).text


def test_chosen_runs_enter_the_final_table(world, track, browse, make_run):
    admin = browse().sign_in(world.user("Olga", admin=True).name)
    anna = register(browse(), "Anna", "Team A")
    runs = [upload(anna, track, make_run(near)).headers["location"] for near in (0.9, 0.1)]
    assert anna.post(f"{runs[1]}/final", {"picked": "true"}).status_code == 303
    admin.post(f"/admin/c/{track.competition.slug}/close")
    final = world.wait(lambda session: session.get_one(Track, track.id).final)
    assert set(final["measures"][0]["rows"]) == {"uniform", "popularity (oracle)", "Team A-run2"}
    late = anna.post(f"{runs[0]}/final", {"picked": "true"})
    assert late.status_code == 409
    assert "the choice of final runs is fixed" in late.text


def test_a_team_whose_members_are_disabled_leaves_the_tables(world, track, browse, make_run):
    admin = browse().sign_in(world.user("Olga", admin=True).name)
    board = f"/c/{track.competition.slug}/{track.slug}"
    anna, bert = world.user("Anna", "Team A"), world.user("Bert", "Team B")
    for user in (anna, bert):
        world.hand_in(user, track, make_run(0.5))

    def set_role(role):
        assert admin.post(f"/admin/users/{bert.id}/role", {"role": role}).status_code == 303

    def shows(*teams):
        world.wait(lambda session: [t for t in ("Team A", "Team B") if t in browse().get(board).text] == list(teams))

    shows("Team A", "Team B")
    set_role("disabled")
    shows("Team A")
    admin.post(f"/admin/c/{track.competition.slug}/close")
    final = world.wait(lambda session: session.get_one(Track, track.id).final)
    assert set(final["measures"][0]["rows"]) == {"uniform", "popularity (oracle)", "Team A-run1"}
    set_role("member")
    world.wait(lambda session: "Team B-run1" in browse().get(board).text)
    shows("Team A", "Team B")


def test_private_until_published(world, browse, make_run):
    track = world.competition(private=True)
    board = f"/c/{track.competition.slug}/{track.slug}"
    anna = register(browse(), "Anna", "Team A")
    upload(anna, track, make_run(0.5))
    world.wait(lambda session: session.get_one(Track, track.id).standings)
    assert "Team A" not in browse().get(board).text
    assert "Only your team sees these scores" in anna.get(f"{board}/runs").text
    assert anna.post(f"{board}/publish", {"published": "true"}).status_code == 303
    world.wait(lambda session: "Team A" in browse().get(board).text)
    anna.post(f"{board}/publish", {"published": "false"})
    world.wait(lambda session: "Team A" not in browse().get(board).text)


def test_teams_are_joined_by_invitation(world, track, browse):
    anna, bert = register(browse(), "Anna", "Team A"), browse()
    link = re.search(r"http://testserver(/join/[^<]+)", anna.post("/team/invitation").text)[1]
    assert bert.get(link).headers["location"].startswith("/login?next=/join/")
    bert.post("/register", {"name": "Bert", "password": "correct horse"}, at="/register")
    assert "Join Team A" in bert.get(link).text
    assert bert.post(link).status_code == 303
    assert "Bert" in anna.get("/team").text
    anna.post("/team/invitation")
    assert browse().sign_in("Bert").get(link).status_code == 404


def test_organiser_makes_a_competition(world, browse, truth_file):
    admin = browse().sign_in(world.user("Olga", admin=True).name)
    form = {
        "name": "Mine", "description": "# Hi", "opens": "2020-01-01T00:00", "closes": "2120-01-01T00:00", "quota": "5",
        "daily": "", "share": "50", "digits": "3", "finals": "1", "transform": "log2", "ladder": "1",
        "baseline_uniform": "1",
    }  # fmt: skip
    wrong = admin.post("/admin/new", {**form, "closes": "2019-01-01T00:00"}, at="/admin/new")
    assert (wrong.status_code, "closing time: expected after the opening time" in wrong.text) == (400, True)
    assert admin.post("/admin/new", form).headers["location"] == "/admin/c/mine"
    csrf = admin.token("/admin/c/mine")
    bad = admin.client.post("/admin/c/mine/tracks", data={"csrf": csrf}, files={"truth": ("t.json", b"[{}]")})
    assert (bad.status_code, "of no known kind" in bad.text) == (400, True)
    assert 'role="alert">truth/t.json: ' in bad.text
    data = {"csrf": csrf, "language": "English", "measures": "NMD(A), JSD"}
    added = admin.client.post("/admin/c/mine/tracks", data=data, files={"truth": ("t.json", truth_file.read_bytes())})
    assert added.status_code == 303
    assert "NMD(A), JSD" in admin.get("/c/mine").text
    fixed = admin.post("/admin/c/mine", {**form, "share": "60"})
    assert "share and baselines: fixed since there are tracks" in fixed.text
    assert admin.post("/admin/c/mine", {**form, "quota": "7"}).status_code == 303
    assert "7 runs a team and track" in admin.get("/c/mine").text
    assert "quota: 5 → 7" in admin.get("/admin/audit").text
    removed = admin.post("/admin/c/mine/english/remove", {"confirm": "english"})
    assert removed.status_code == 303
    assert "No track yet" in admin.get("/c/mine").text
    assert not any(world.site.truths.iterdir())


def test_a_task_folder_is_a_truth_too(world, browse, tmp_path):
    from rejoinder.tasks.build import Cut, build_task

    words = [f"w{number}" for number in range(60)]
    cuts = [Cut((("a", f"question {word}"),), (word,)) for word in words]
    build_task(cuts, [(word,) for word in words], candidates=10).save(tmp_path / "task")
    admin = browse().sign_in(world.user("Olga", admin=True).name)
    track = world.competition()
    slug = track.competition.slug
    files = [("truth", (path.name, path.read_bytes())) for path in sorted((tmp_path / "task").glob("*.parquet"))]
    data = {"csrf": admin.token(f"/admin/c/{slug}"), "subtask": "Selection"}
    added = admin.client.post(f"/admin/c/{slug}/tracks", data=data, files=files)
    assert added.status_code == 303, added.text
    page = browse().get(f"/c/{slug}").text
    assert "60 examples · R@1, R@10, R@50, MRR, DSTC7" in page
    world.wait(lambda session: "uniform" in browse().get(f"/c/{slug}/selection").text)


def test_first_administrator_and_forgotten_password(world, browse):
    from rejoinder.board import accounts

    with world.site.database.writing() as session:
        secret = accounts.first_link(session)
    owner = browse()
    short = owner.post(f"/link/{secret}", {"name": "Olga", "password": "short"}, at=f"/link/{secret}")
    assert "password: expected 10 to 200 characters" in short.text
    made = owner.post(f"/link/{secret}", {"name": "Olga", "password": "correct horse"}, at=f"/link/{secret}")
    assert made.headers["location"] == "/admin"
    assert browse().get(f"/link/{secret}").status_code == 404
    with world.site.database.writing() as session:
        assert accounts.first_link(session) is None
    anna = world.user("Anna")
    signed_in = browse().sign_in("Anna")
    link = re.search(r"http://testserver(/link/[^<]+)", owner.post(f"/admin/users/{anna.id}/link").text)[1]
    fresh = browse()
    assert "A new password for Anna" in fresh.get(link).text
    assert "A new password for Anna" in fresh.post(link, {"password": "short"}, at=link).text  # and the form again
    token = world.bearer(anna)
    assert fresh.post(link, {"password": "another horse", "revoke": "true"}, at=link).status_code == 303
    assert fresh.get("/api/me", headers=token).status_code == 401
    assert fresh.get("/account").status_code == 200
    assert signed_in.get("/account").status_code == 303  # signed out everywhere


def test_passwords_tokens_and_disabled_people(world, browse):
    admin = browse().sign_in(world.user("Olga", admin=True).name)
    anna = world.user("Anna", "Team A")
    browser = browse().sign_in("anna")  # however it is typed
    secret = re.search(r'id="token">(rjb_[^<]+)<', browser.post("/account/tokens", {"name": "laptop"}).text)[1]
    asked = {"Authorization": f"Bearer {secret}"}
    assert browser.get("/api/me", headers=asked).json() == {"name": "Anna", "team": "Team A"}
    revoke = re.search(r"/account/tokens/\w+/revoke", browser.get("/account").text)[0]
    assert browser.post(revoke).status_code == 303
    assert browser.get("/api/me", headers=asked).status_code == 401
    wrong = browser.post("/account/password", {"old": "no", "new": "another horse"})
    assert "no such name and password" in wrong.text
    elsewhere, token = browse().sign_in("Anna"), world.bearer(anna)
    assert browser.post("/account/password", {"old": "correct horse", "new": "another horse"}).status_code == 303
    assert browser.get("/account").status_code == 200
    assert elsewhere.get("/account").status_code == 303  # signed out there
    assert browser.get("/api/me", headers=token).status_code == 200
    again = {"old": "another horse", "new": "a third horse", "revoke": "true"}
    assert browser.post("/account/password", again).status_code == 303
    assert browser.get("/api/me", headers=token).status_code == 401
    token = world.bearer(anna)
    assert admin.post(f"/admin/users/{anna.id}/role", {"role": "disabled"}).status_code == 303
    assert browser.get("/account").status_code == 303
    assert browser.get("/api/me", headers=token).status_code == 401


def test_names_are_taken_however_they_are_written(world, browse):
    world.user("Anna", "Team A")
    for name in ("anna", "ANNA", "Ａｎｎａ", " Anna "):
        taken = browse().post("/register", {"name": name, "password": "correct horse"}, at="/register")
        assert (taken.status_code, "is taken" in taken.text) == (400, True), name
    bert = browse()
    bert.post("/register", {"name": "Bert", "password": "correct horse"}, at="/register")
    assert "is taken" in bert.post("/team", {"name": "team a"}, at="/team").text


def test_shared_pages_are_each_visitor_s_own(world, track, browse):
    team = world.user("Anna + Co", "Team A").team_id
    members = world.user("Bert"), world.user("Carla")
    with world.site.database.writing() as session:
        session.get_one(User, members[0].id).team_id = team
    anna, bert, carla, nobody = *(browse().sign_in(name) for name in ("Anna + Co", "Bert", "Carla")), browse()
    board = f"/c/{track.competition.slug}/{track.slug}"
    for _ in range(2):
        for browser, name in ((anna, "Anna + Co"), (bert, "Bert"), (carla, "Carla"), (nobody, "Sign in")):
            page = browser.get(board).text
            shown = [each for each in ("Anna + Co", "Bert", "Carla", "Sign in") if f">{each}</a>" in page]
            assert shown == [name]
            assert ("Team A" in page) == (browser in (anna, bert))
    tokens = {browser.token(board) for browser in (anna, bert, carla)}
    assert len(tokens) == 3
    assert anna.post("/logout", at=board).status_code == 303  # with the token of such a page
    assert ">Sign in</a>" in anna.get(board).text


def test_public_pages(world, track, browse):
    for path in ("/", "/help", "/login", "/register", "/c/contest", "/c/contest/english-quality"):
        page = browse().get(path)
        assert page.status_code == 200
        assert page.text.count("<h1") == 1
        assert '<html lang="en">' in page.text
