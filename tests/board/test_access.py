"""Who may do what: every route by role, forms only from this site, and what each answer tells the browser."""

import http.client
import re

import pytest
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.testclient import TestClient

from rejoinder.board.web.app import Options, create_app
from rejoinder.board.web.visitor import address_of

ROLES = ("nobody", "member", "teammate", "stranger", "administrator")
ANYONE, MEMBER, TEAM, OWN_TEAM, ADMIN, TOKEN = (
    set(ROLES),
    {"member", "teammate", "stranger", "administrator"},
    {"teammate", "stranger"},
    {"teammate", "administrator"},
    {"administrator"},
    {"token"},
)
RULES = {
    "GET /": ANYONE,
    "GET /help": ANYONE,
    "GET /c/{slug}": ANYONE,
    "GET /c/{slug}/{track}": ANYONE,
    "GET /c/{slug}/{track}/report": ANYONE,
    "GET /c/{slug}/{track}/tables/{name}": ANYONE,
    "GET /c/{slug}/{track}/charts/{name}": ANYONE,
    "GET /register": ANYONE,
    "POST /register": ANYONE,
    "GET /login": ANYONE,
    "POST /login": ANYONE,
    "POST /logout": MEMBER,
    "GET /link/{secret}": ANYONE,
    "POST /link/{secret}": ANYONE,
    "GET /account": MEMBER,
    "POST /account/tokens": MEMBER,
    "POST /account/tokens/{token_id}/revoke": MEMBER,
    "POST /account/password": MEMBER,
    "GET /team": MEMBER,
    "POST /team": MEMBER,
    "POST /team/invitation": TEAM,
    "GET /join/{secret}": MEMBER,
    "POST /join/{secret}": MEMBER,
    "GET /c/{slug}/{track}/runs": TEAM,
    "POST /c/{slug}/{track}/runs": TEAM,
    "POST /c/{slug}/{track}/publish": TEAM,
    "GET /runs/{submission_id}": OWN_TEAM,
    "POST /runs/{submission_id}/final": {"teammate"},
    "GET /admin": ADMIN,
    "GET /admin/audit": ADMIN,
    "GET /admin/new": ADMIN,
    "POST /admin/new": ADMIN,
    "GET /admin/c/{slug}": ADMIN,
    "POST /admin/c/{slug}": ADMIN,
    "POST /admin/c/{slug}/close": ADMIN,
    "POST /admin/c/{slug}/tracks": ADMIN,
    "POST /admin/c/{slug}/{track}/remove": ADMIN,
    "POST /admin/users/{user_id}/link": ADMIN,
    "POST /admin/users/{user_id}/role": ADMIN,
    "GET /api/me": TOKEN,
    "GET /api/competitions": ANYONE,
    "GET /api/competitions/{slug}/{track}/leaderboard": ANYONE,
    "POST /api/competitions/{slug}/{track}/runs": TOKEN,
    "GET /api/competitions/{slug}/{track}/runs": TOKEN,
    "GET /api/runs/{run_id}": TOKEN,
}


def routes(app):
    found = {}
    for route in app.routes:
        for each in getattr(getattr(route, "original_router", None), "routes", [route]):
            if isinstance(each, APIRoute):
                prefix = ""
                found |= {f"{method} {prefix}{each.path}": each for method in each.methods}
    return found


@pytest.fixture
def setting(world, application, browse, make_run):
    """A competition with one scored run, and people in every role."""
    track = world.competition(private=True)
    people = {
        "member": world.user("Member"),
        "teammate": world.user("Mate", "Team A"),
        "stranger": world.user("Stranger", "Team B"),
        "administrator": world.user("Olga", admin=True),
    }
    run = world.hand_in(people["teammate"], track, make_run(0.5))
    values = {
        "slug": track.competition.slug, "track": track.slug, "submission_id": run.id, "run_id": run.id,
        "secret": "x" * 40, "name": "scores.csv", "token_id": "0" * 16, "user_id": people["member"].id,
    }  # fmt: skip
    browsers = {role: browse().sign_in(user.name) for role, user in people.items()}
    return {"nobody": browse(), **browsers}, values, people


def ask(browser, rule, values, **options):
    method, path = rule.format(**values).split(" ", 1)
    if method == "GET":
        return browser.get(path, **options)
    csrf = browser.token("/login") if rule.startswith(("POST /login", "POST /register")) else browser.token("/register")
    return browser.client.post(path, data={"csrf": csrf}, **options)


def test_every_route_has_a_rule(application):
    assert set(routes(application.app)) == set(RULES)


@pytest.mark.parametrize("role", ROLES)
def test_routes_by_role(setting, role):
    browsers, values, _ = setting
    for rule, allowed in RULES.items():
        if rule == "POST /logout" and role in allowed:
            continue  # or the rest would be tested signed out
        answer = ask(browsers[role], rule, values)
        turned_away = answer.status_code in (401, 403) or answer.headers.get("location", "").startswith("/login")
        hidden = rule.endswith("/runs/{submission_id}") or "/runs/{submission_id}/" in rule
        turned_away |= hidden and answer.status_code == 404
        assert turned_away == (role not in allowed), (rule, answer.status_code, answer.text[:300])
        assert answer.status_code < 500, rule


def test_a_token_opens_the_api_and_nothing_else(world, setting):
    browsers, values, people = setting
    headers = world.bearer(people["teammate"])
    for rule, allowed in RULES.items():
        if "nobody" in allowed:
            continue
        answer = ask(browsers["nobody"], rule, values, headers=headers)
        turned_away = answer.status_code in (401, 403) or answer.headers.get("location", "").startswith("/login")
        assert turned_away == (allowed != TOKEN), (rule, answer.status_code)
    strange = world.bearer(people["stranger"])
    assert browsers["nobody"].get(f"/api/runs/{values['run_id']}", headers=strange).status_code == 404
    assert browsers["teammate"].get("/api/me").status_code == 401  # a cookie is no token
    for wrong in ("Bearer ", "Bearer x", "Basic x", headers["Authorization"] + "x"):
        assert browsers["nobody"].get("/api/me", headers={"Authorization": wrong}).status_code == 401


def test_forms_come_from_this_site_only(world, setting):
    browsers, values, _ = setting
    browser = browsers["administrator"]
    posts = [rule for rule in RULES if rule.startswith("POST ") and "/api/" not in rule]
    right = browser.token("/account")
    stolen = browsers["stranger"].token("/account")
    team = {"POST /c/{slug}/{track}/runs", "POST /c/{slug}/{track}/publish", "POST /runs/{submission_id}/final"}
    for rule in posts:
        path = rule.format(**values).removeprefix("POST ")
        sender = browsers["teammate"] if rule in team else browser
        own = sender.token("/account")
        for token, headers in ((None, {}), ("0" * 64, {}), (stolen, {}), (own, {"Sec-Fetch-Site": "cross-site"})):
            data = {} if token is None else {"csrf": token}
            files = {"run": ("x", b"x")} if path.endswith(("/runs", "/tracks")) else None
            answer = sender.client.post(path, data=data, files=files, headers=headers)
            assert answer.status_code == 403, (rule, token, headers)
    assert browser.get("/account").status_code == 200  # not signed out by any of them
    assert right


def test_every_administrative_act_is_in_the_log(world, setting, truth_file):
    browsers, values, people = setting
    admin, slug = browsers["administrator"], values["slug"]
    times = {"opens": "2020-01-01T00:00", "closes": "2120-01-01T00:00"}
    rules = {**times, "quota": "5", "share": "50", "digits": "3", "finals": "1"}
    acts = {
        "POST /admin/new": {**rules, "name": "Second"},
        "POST /admin/c/{slug}": {**rules, "name": "Changed", "baseline_uniform": "1", "baseline_popularity": "1"},
        "POST /admin/c/{slug}/tracks": {"language": "Dutch"},
        "POST /admin/users/{user_id}/link": {},
        "POST /admin/users/{user_id}/role": {"role": "administrator"},
        "POST /admin/c/{slug}/close": {},
        "POST /admin/c/{slug}/{track}/remove": {"confirm": values["track"]},
    }
    assert set(acts) == {rule for rule in RULES if rule.startswith("POST /admin")}
    for rule, data in acts.items():
        before = admin.get("/admin/audit").text.count("<tr role")
        files = {"truth": ("t.json", truth_file.read_bytes())} if rule.endswith("/tracks") else None
        path = rule.format(**values).removeprefix("POST ")
        answer = admin.client.post(path, data={"csrf": admin.token("/account"), **data}, files=files)
        assert answer.status_code in (200, 303), (rule, answer.text)
        assert admin.get("/admin/audit").text.count("<tr role") == before + 1, rule
    log = admin.get("/admin/audit").text
    assert "name: Contest → Changed" in log
    assert f"{slug}/dutch" in log
    assert people["member"].name in log


def test_headers(setting):
    for path in ("/", "/login", "/c/contest/english-quality", "/nothing", "/api/me", "/static/board.js"):
        answer = setting[0]["nobody"].get(path)
        policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "server" not in answer.headers


def test_head_is_answered_as_get(world, make_server):
    server = make_server(world.site.folder, scorers=1)
    for path, status in (("/", 200), ("/admin", 303), ("/nothing", 404)):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("HEAD", path)
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (status, b"")
        assert "content-security-policy" in answer.headers
        connection.close()


def test_pages_bring_nothing_from_elsewhere_and_nothing_inline(setting):
    browsers, values, _ = setting
    for rule, allowed in RULES.items():
        if not rule.startswith("GET ") or "/api/" in rule:
            continue
        for role in allowed & set(ROLES):
            text = ask(browsers[role], rule, values).text
            loaded = re.findall(r'(?:src|action|<link[^>]* href)="([^"]*)"', text)
            assert all(each.startswith("/") and not each.startswith("//") for each in loaded), (rule, loaded)
            assert not re.search(r"<style|<script(?! src=)|\son\w+=|\sstyle=|javascript:", text), rule


def test_cookies(site, world):
    world.user("Anna")
    for url, name, secure in (("http://testserver", "board", False), ("https://testserver", "__Host-board", True)):
        app = create_app(site, Options(url=url, scorers=1))
        with TestClient(app, base_url=url, follow_redirects=False) as client:
            page = client.get("/login")
            first = page.headers["set-cookie"]
            csrf = re.search(r'name="csrf" value="(\w+)"', page.text)[1]
            done = client.post("/login", data={"csrf": csrf, "name": "Anna", "password": "correct horse"})
            cookie = done.headers["set-cookie"]
            assert cookie.startswith(f"{name}=")
            assert cookie.split(";")[0] != first.split(";")[0]  # signing in gives a new secret
            assert "HttpOnly" in cookie
            assert "SameSite=lax" in cookie
            assert "Path=/" in cookie
            assert "Domain" not in cookie
            assert ("Secure" in cookie) == secure
            assert ("strict-transport-security" in page.headers) == secure


def test_signing_in_leads_nowhere_else(world, browse):
    world.user("Anna")
    for elsewhere in ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"):
        asked = {"name": "Anna", "password": "correct horse", "next": elsewhere}
        assert browse().post("/login", asked, at="/login").headers["location"] == "/"


def test_guessing_is_slowed_down(world, browse):
    world.user("Anna")
    guesses = [browse().post("/login", {"name": "Anna", "password": f"guess {n}"}, at="/login") for n in range(12)]
    assert [guess.status_code for guess in guesses[:10]] == [400] * 10
    assert guesses[-1].status_code == 429
    assert int(guesses[-1].headers["retry-after"]) > 0
    for spelt in ("  Anna", "anna ", "\u00a0ANNA", "\uff21nna"):  # one person, however the name is spelt
        assert browse().post("/login", {"name": spelt, "password": "guess"}, at="/login").status_code == 429


def test_nobody_learns_who_is_registered(world, browse):
    world.user("Anna")
    known, unknown = (
        browse().post("/login", {"name": name, "password": "wrong horse"}, at="/login").text
        for name in ("Anna", "Bert")
    )
    cut = re.compile(r'value="[^"]*"')
    assert cut.sub("", known) == cut.sub("", unknown)


def test_secrets_are_kept_as_hashes(world, browse):
    user = world.user("Anna", "Team A")
    browser = browse().sign_in("Anna")
    secrets = [
        "correct horse",
        world.bearer(user)["Authorization"].removeprefix("Bearer "),
        browser.client.cookies["board"],
        re.search(r"/join/([^<]+)", browser.post("/team/invitation").text)[1],
    ]
    with world.site.database.engine.connect() as connection:
        stored = "\n".join(connection.connection.driver_connection.iterdump())
    assert "$argon2id$" in stored
    for secret in secrets:
        assert secret not in stored


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::"),
        ("2001:db8:1:3::1", "2001:db8:1:3::"),
        ("testclient", "testclient"),
    ],
)
def test_tries_are_counted_by_network(host, counted):
    assert address_of(Request({"type": "http", "client": (host, 1234)})) == counted
