"""The whole story in a real browser: register, hand runs in, hit the quota, close, see the final table."""

import os
import re
from pathlib import Path

import pytest
from sqlalchemy import select

from rejoinder.board.models import Submission, Team, Track
from rejoinder.board.standings import is_stale

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PICTURES = os.environ.get("BOARD_PICTURES")
"""A folder to keep pictures of every page in, to look at."""

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as driver:
        try:
            browser = driver.chromium.launch(
                executable_path=str(CHROMIUM) if CHROMIUM.exists() else None, args=FLAGS, headless=True
            )
        except playwright.Error as error:
            pytest.skip(f"no Chromium to be had: {str(error).splitlines()[0]}")
        yield browser
        browser.close()


class Person:
    """Somebody at a browser; every page loads without a complaint of its console."""

    def __init__(self, chromium, url, **options):
        self.context = chromium.new_context(base_url=url, **options)
        self.page = self.context.new_page()
        self.complaints = []
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def go(self, path):
        self.page.goto(path)
        return self

    def fill(self, **fields):
        for label, text in fields.items():
            self.page.get_by_label(label.replace("_", " "), exact=True).fill(text)
        return self

    def press(self, name):
        self.page.get_by_role("button", name=name, exact=True).click()
        return self

    def sees(self, text):
        playwright.expect(self.page.get_by_text(text).first).to_be_visible(timeout=30_000)
        return self

    def picture(self, name):
        """Keep pictures, wide and narrow, light and dark; the page must fit a phone."""
        self.page.wait_for_load_state()  # a text can be seen before the page has its styles
        for width, theme in ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")):
            if not PICTURES and (width, theme) != (390, "light"):
                continue
            self.page.set_viewport_size({"width": width, "height": 800})
            self.page.emulate_media(color_scheme=theme)
            if PICTURES:
                self.page.screenshot(path=f"{PICTURES}/{name}-{width}-{theme}.png", full_page=True)
            too_wide = self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            assert too_wide <= 0, f"{name} is {too_wide} pixels too wide at {width}"
        self.page.set_viewport_size({"width": 1280, "height": 800})
        return self


@pytest.fixture
def play(make_world, make_server, chromium, make_run, bad_run, tmp_path):
    world = make_world()
    track = world.competition(quota=2, description="Judge **helpdesk dialogues**.\n\n- one\n- two")
    for number in range(5):
        world.hand_in(world.user(f"User {number}", f"Team {number}"), track, make_run(0.1 + 0.15 * number, number))
    for name, content in (("good.json", make_run(0.5)), ("better.json", make_run(0.9)), ("mistake.json", bad_run)):
        (tmp_path / name).write_bytes(content)
    return world, track, make_server(world.site.folder, scorers=1), tmp_path


def test_a_whole_competition(play, chromium):
    world, track, server, folder = play
    board = f"/c/{track.competition.slug}/{track.slug}"
    organiser, anna = Person(chromium, server.url), Person(chromium, server.url)

    organiser.go(server.link()).picture("link").fill(Name="Olga", Password="correct horse").press("Start organising")
    organiser.sees("New competition").picture("admin")
    organiser.go("/admin/new").picture("admin-new").go(f"/admin/c/{track.competition.slug}").picture("admin-edit")
    assert "/link/" in server.link()
    organiser.go(server.link()).sees("this link was used already").picture("problem")

    anna.go("/").picture("index").page.get_by_role("link", name="Register").click()
    anna.picture("register").fill(Name="Anna", Password="short").press("Register")
    anna.sees("password: expected 10 to 200 characters").fill(Password="correct horse").press("Register")
    anna.sees("Make a team").picture("team-new").fill(**{"Team name": "Étoile 7"}).press("Make the team")
    anna.sees("Members").press("Make a new invitation link").sees("/join/").picture("team")
    anna.go("/account").press("Make a token").sees("Copy it now").picture("account")
    anna.go("/help").picture("help").go("/login").picture("login")
    anna.go(f"/c/{track.competition.slug}").picture("competition").go(board).sees("Team 4").picture("leaderboard")

    anna.page.get_by_role("link", name="Hand in a run").click()
    anna.sees("Nothing handed in yet").picture("runs-empty")
    anna.page.get_by_label("Choose a run file").set_input_files(folder / "mistake.json")
    anna.press("Check and score").sees("probabilities sum to 1.5; expected 1").picture("run-refused")
    anna.go(f"{board}/runs").sees("2 of 2 runs left")
    for name in ("good.json", "better.json"):
        anna.go(f"{board}/runs").page.get_by_label("Choose a run file").set_input_files(folder / name)
        anna.press("Check and score").sees("your best so far")
    anna.picture("run-scored").go(f"{board}/runs").sees("No run left").sees("Progress by NMD(A)")
    anna.page.get_by_role("button", name="run 3 in the final table").click()
    anna.sees("★ chosen").picture("runs")

    world.wait(lambda session: not is_stale(session.get_one(Track, track.id)))
    anna.go(board).sees("Étoile 7")
    first = anna.page.locator("table.standings tbody tr").first
    assert "Étoile 7" in first.inner_text()
    anna.page.get_by_role("link", name="RSNOD(A)").click()
    assert "by=RSNOD" in anna.page.url
    anna.picture("leaderboard-own")

    organiser.go(f"/admin/c/{track.competition.slug}").press("Close it now")
    world.wait(lambda session: session.get_one(Track, track.id).final)
    organiser.go("/admin/audit").sees("closed a competition").picture("audit")
    anna.go(board).sees("Final results").sees("Étoile 7-run3").picture("final")
    assert anna.page.evaluate("document.querySelector('.chart img').naturalWidth") > 100
    anna.go(f"{board}/report").sees("Which differences are real").picture("report")
    assert not [said for said in anna.complaints + organiser.complaints if not re.search("status of 4", said)]


def test_dropping_a_file_shows_its_name_and_the_quota_error(play, chromium):
    world, track, server, folder = play
    anna = Person(chromium, server.url)
    anna.go("/register").fill(Name="Anna", Password="correct horse").press("Register")
    anna.fill(**{"Team name": "Team X"}).press("Make the team").go(f"/c/{track.competition.slug}/{track.slug}/runs")
    anna.page.evaluate(
        """text => {
            const carried = new DataTransfer();
            carried.items.add(new File([text], "dropped.json"));
            const drop = new DragEvent("drop", {dataTransfer: carried, bubbles: true, cancelable: true});
            document.querySelector(".drop").dispatchEvent(drop);
        }""",
        (folder / "good.json").read_text(),
    )
    anna.sees("dropped.json").press("Check and score").sees("your best so far")
    path = f"/c/{track.competition.slug}/{track.slug}/runs"
    second = anna.context.new_page()
    second.goto(path)
    anna.go(path).page.get_by_label("Choose a run file").set_input_files(folder / "better.json")
    anna.press("Check and score").sees("your best so far")
    second.get_by_label("Choose a run file").set_input_files(folder / "good.json")
    second.get_by_role("button", name="Check and score").click()
    playwright.expect(second.get_by_text("the quota is used up")).to_be_visible()
    with world.site.database.reading() as session:
        own = select(Submission.filename, Submission.status).join(Team).where(Team.name == "Team X")
        assert sorted(map(tuple, session.execute(own))) == [("better.json", "scored"), ("dropped.json", "scored")]


def test_everything_works_without_scripts(play, chromium):
    _, track, server, folder = play
    anna = Person(chromium, server.url, java_script_enabled=False)
    anna.go("/register").fill(Name="Anna", Password="correct horse").press("Register")
    anna.fill(**{"Team name": "Plain"}).press("Make the team").go(f"/c/{track.competition.slug}/{track.slug}/runs")
    anna.page.get_by_label("Choose a run file").set_input_files(folder / "mistake.json")
    anna.press("Check and score").sees("probabilities sum to 1.5; expected 1").page.get_by_text("All runs").click()
    anna.page.get_by_label("Choose a run file").set_input_files(folder / "good.json")
    anna.press("Check and score").sees("your best so far")
    anna.go(f"/c/{track.competition.slug}/{track.slug}").page.get_by_role("link", name="RSNOD(A)").click()
    assert anna.page.locator("th[aria-sort]").inner_text().startswith("RSNOD(A)")
    assert not anna.complaints
