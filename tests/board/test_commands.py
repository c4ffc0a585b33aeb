"""`rejoinder board`: init, submit, backup, restore, archive; and the migrations behind them."""

import io
import tarfile
from datetime import timedelta

import alembic.autogenerate
import pytest
from alembic.runtime.migration import MigrationContext
from sqlalchemy import select

from rejoinder.board import accounts, standings
from rejoinder.board.backup import read_backup, write_backup
from rejoinder.board.competitions import Place
from rejoinder.board.models import Act, Base, Competition, Submission, SubmissionScores, Track, User, now
from rejoinder.board.scorer_process import UNLIMITED, ScorerProcess
from rejoinder.board.site import open_site


def test_models_are_what_the_migrations_make(make_world, database_url):
    world = make_world(database_url)
    with world.site.database.engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert alembic.autogenerate.compare_metadata(context, Base.metadata) == []
    world.site.database.migrate()  # once more, which changes nothing


def test_init_sample(cli, tmp_path):
    folder = tmp_path / "play"
    code, _, err = cli("board", "init", folder, "--sample")
    assert code == 0, err
    assert f"rejoinder board serve {folder}" in err
    assert (folder.stat().st_mode & 0o777) == 0o700
    assert b"annotations" not in (folder / "sample" / "test_en.json").read_bytes()
    assert (folder / "sample" / "first_en.json").is_file()
    site = open_site(folder)
    with site.database.reading() as session:
        competition = session.scalars(select(Competition)).one()
        assert [track.slug for track in competition.tracks] == [
            "chinese-nuggets", "chinese-quality", "english-nuggets", "english-quality",
        ]  # fmt: skip
        assert (competition.quota, competition.share, competition.ladder) == (10, 0.5, True)
        online = {track.slug: track.online for track in competition.tracks}
        assert online["english-quality"] == online["chinese-quality"]  # translations share their half
    site.close()
    code, _, err = cli("board", "init", folder)
    assert (code, "is not an empty folder" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["serve", "nowhere"], "nowhere is no board; make one with `rejoinder board init nowhere`"),
        (["init", "new", "--database", "mysql://x"], "mysql is not supported"),
        (["init", "new", "--database", "x"], "expected a URL such as"),
        (["init", "new", "--database", "postgresql://board@127.0.0.1:9/x"], "error: database: connection failed"),
        (["submit", "run.json", "--to", "http://x", "--token", "t"], "expected a track's address"),
        (["submit", "run.json", "--to", "http://127.0.0.1:9/c/a/b", "--token", "t"], "run.json: no such file"),
    ],
)
def test_mistakes(cli, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, _, err = cli("board", *arguments)
    assert code == 2
    assert message in err
    assert not (tmp_path / "new").exists()


def test_databases_that_are_none(cli, tmp_path):
    cli("board", "init", tmp_path / "board")
    (tmp_path / "board" / "board.db").write_text("no database")
    code, _, err = cli("board", "backup", tmp_path / "board", "--out", tmp_path / "b.tar")
    assert (code, err) == (2, "error: database: file is not a database\n")
    assert not (tmp_path / "b.tar").exists()


def test_missing_libraries(cli, tmp_path, monkeypatch):
    import importlib.util

    known = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "nh3" else known(name, *rest))
    code, _, err = cli("board", "init", tmp_path / "new")
    assert (code, "the board needs nh3: pip install 'rejoinder[board]'" in err) == (2, True)


def test_submit(world, make_server, cli, tmp_path, make_run, bad_run):
    track = world.competition(quota=2)
    token = world.bearer(world.user("Anna", "Team A"))["Authorization"].removeprefix("Bearer ")
    server = make_server(world.site.folder, scorers=1)
    run, bad = tmp_path / "run.json", tmp_path / "bad.json"
    run.write_bytes(make_run(0.5))
    bad.write_bytes(bad_run)
    to = f"{server.url}/c/{track.competition.slug}/{track.slug}"
    code, _, err = cli("board", "submit", bad, "--to", to, "--token", token)
    assert (code, "error: bad.json: record 7 (id " in err) == (2, True)
    code, out, _ = cli("board", "submit", run, "--to", to, "--token", token)
    assert code == 0
    assert "run.json: run 2, scored" in out
    assert "NMD(A)" in out
    assert "1 run left" in out
    code, out, _ = cli("board", "submit", run, "--to", f"{to}/runs?by=NMD(A)#progress", "--token", f"{token}\r")
    assert "no score is released: no better than your best by more than noise; 0 runs left" in out
    code, _, err = cli("board", "submit", run, "--to", to, "--token", token)
    assert (code, "the quota is used up" in err) == (2, True)
    code, _, err = cli("board", "submit", run, "--to", to, "--token", "wrong")
    assert (code, "the board does not know this token" in err) == (2, True)
    for odd in ("a\nb", "tok\u2013en", ""):
        code, _, err = cli("board", "submit", run, "--to", to, "--token", odd)
        assert (code, "--token: expected letters" in err) == (2, True)
    code, _, err = cli("board", "submit", run, "--to", "http://127.0.0.1:9/c/a/b", "--token", "t")
    assert (code, "cannot be reached" in err) == (2, True)
    assert "/link/" in server.output.read_text()  # nobody is the administrator yet


def contents(site):
    """Return everything in the database, by table."""
    with site.database.engine.connect() as connection:
        return {
            table.name: sorted((tuple(row) for row in connection.execute(select(table))), key=repr)
            for table in Base.metadata.sorted_tables
        }


def test_backup_and_restore(make_world, database_url, tmp_path, make_run):
    world = make_world(database_url)
    track = world.competition()
    user = world.user("Anna", "Team A", admin=True)
    run = world.hand_in(user, track, make_run(0.5))
    archive = tmp_path / "backup.tar.gz"
    write_backup(world.site, archive)
    assert archive.stat().st_mode & 0o777 == 0o600
    before = contents(world.site)
    read_backup(archive, tmp_path / "copy")  # to SQLite, whatever it was
    copy = open_site(tmp_path / "copy")
    assert contents(copy) == before
    assert (copy.runs / run.id).read_bytes() == (world.site.runs / run.id).read_bytes()
    with copy.database.reading() as session:
        assert accounts.check_password(session, "Anna", "correct horse").id == user.id
        assert session.get_one(SubmissionScores, run.id).whole
        again = session.get_one(Track, track.id)
        copied = session.get_one(User, user.id)
    assert type(world)(copy, world.truth_file, world.scorer).hand_in(copied, again, make_run(0.6)).status == "scored"
    copy.close()


def test_a_backup_while_files_come_and_go(world, tmp_path, monkeypatch):
    """A run that is refused takes its file along, also while a backup is being written."""
    for name in ("going", "staying", ".coming.part"):
        (world.site.runs / name).write_bytes(b"run")
    look = tarfile.TarFile.gettarinfo

    def look_late(archive, name=None, arcname=None, fileobj=None):
        if str(name).endswith("going"):
            (world.site.runs / "going").unlink()
        return look(archive, name, arcname, fileobj)

    monkeypatch.setattr(tarfile.TarFile, "gettarinfo", look_late)
    write_backup(world.site, tmp_path / "backup.tar")
    with tarfile.open(tmp_path / "backup.tar") as archive:
        assert [name for name in archive.getnames() if name.startswith("runs/")] == ["runs/staying"]


def test_restore_to_postgresql(make_world, postgres_url, tmp_path, make_run):
    world = make_world()
    world.hand_in(world.user("Anna", "Team A"), world.competition(), make_run(0.5))
    write_backup(world.site, tmp_path / "backup.tar")
    read_backup(tmp_path / "backup.tar", tmp_path / "copy", postgres_url)
    copy = open_site(tmp_path / "copy", postgres_url)
    assert contents(copy) == contents(world.site)
    copy.close()


def test_bad_backups(cli, tmp_path, world):
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(b"no archive")
    code, _, err = cli("board", "restore", broken, tmp_path / "new")
    assert (code, "not a backup of a board" in err) == (2, True)
    assert not (tmp_path / "new").exists()
    evil = tmp_path / "evil.tar"
    with tarfile.open(evil, "w") as archive:
        archive.add(broken, "runs/../../../escaped")
    code, _, err = cli("board", "restore", evil, tmp_path / "new")
    assert code == 2
    assert not list(tmp_path.rglob("escaped"))
    link = tarfile.TarInfo("runs/link")
    link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
    with tarfile.open(evil, "w") as archive:
        archive.addfile(link)
        archive.add(broken, "runs/link/escaped")
    code, _, err = cli("board", "restore", evil, tmp_path / "new")
    assert (code, "runs/link is no plain file" in err) == (2, True)
    assert not list(tmp_path.rglob("escaped"))
    code, _, err = cli("board", "backup", world.site.folder, "--out", tmp_path / "b.tar.gz")
    assert code == 0
    code, _, err = cli("board", "restore", tmp_path / "b.tar.gz", world.site.folder)
    assert (code, "is not an empty folder" in err) == (2, True)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("revision", b"nonsense"),
        ("tables/users.jsonl", b"{"),
        ("tables/users.jsonl", b"[1]"),
        ("tables/users.jsonl", b'{"id": "a", "surprise": 1}'),
        ("tables/users.jsonl", b'{"id": "a", "created": "soon"}'),
        ("tables/users.jsonl", b'{"id": "a"}'),
        ("tables/users.jsonl", None),
    ],
)
def test_backups_that_no_board_wrote(cli, tmp_path, make_world, database_url, name, content):
    write_backup(make_world().site, tmp_path / "good.tar")
    with tarfile.open(tmp_path / "good.tar") as good, tarfile.open(tmp_path / "evil.tar", "w") as evil:
        for member in good:
            if member.name != name:
                evil.addfile(member, good.extractfile(member))
        other = tarfile.TarInfo(name)
        other.size, other.type = len(content or b""), tarfile.REGTYPE if content else tarfile.DIRTYPE
        evil.addfile(other, io.BytesIO(content or b""))
    where = ["--database", database_url] if database_url else []
    code, _, err = cli("board", "restore", tmp_path / "evil.tar", tmp_path / "new", *where)
    assert (code, "evil.tar: not a backup of a board" in err) == (2, True)
    assert not (tmp_path / "new").exists()
    if database_url:  # nothing half-made: the right archive still fits
        code, _, err = cli("board", "restore", tmp_path / "good.tar", tmp_path / "new", *where)
        assert code == 0, err
        code, _, err = cli("board", "restore", tmp_path / "good.tar", tmp_path / "newer", *where)
        assert (code, "the database holds tables already; give an empty one" in err) == (2, True)


def test_the_archive_has_a_place_for_every_competition(world, cli, tmp_path):
    for name, place in (("Index", Place("en")), ("One", Place("two", "three")), ("One two", Place("three"))):
        world.track(world.truth_file, ["NMD(A)"], place, name=name, closes=now() - timedelta(hours=1))
    with ScorerProcess(UNLIMITED) as scorer:
        assert standings.finish(world.site, scorer) == 3
    code, _, err = cli("board", "archive", world.site.folder, "--out", tmp_path / "archive")
    assert code == 0, err
    pages = sorted(path.name for path in (tmp_path / "archive").glob("*.html"))
    assert pages == ["index-2.html", "index.html", "one-two.html", "one.html"]
    reports = sorted(str(path.parent.relative_to(tmp_path)) for path in (tmp_path / "archive").rglob("report.html"))
    assert reports == [f"archive/results/{place}" for place in ("index-2/en", "one-two/three", "one/two-three")]


def test_archive(world, browse, cli, tmp_path, make_run):
    track = world.competition(description="Some **words**", private=True)
    user = world.user("Anna", "Team A")
    world.hand_in(user, track, make_run(0.5))
    admin = browse().sign_in(world.user("Olga", admin=True).name)
    world.wait(lambda session: session.get_one(Track, track.id).standings)
    cli("board", "archive", world.site.folder, "--out", tmp_path / "archive")
    assert "Team A" not in (tmp_path / "archive" / "contest.html").read_text()  # not published
    admin.post(f"/admin/c/{track.competition.slug}/close")
    world.wait(lambda session: session.get_one(Track, track.id).final)
    code, _, err = cli("board", "archive", world.site.folder, "--out", tmp_path / "archive")
    assert code == 0, err
    page = (tmp_path / "archive" / "contest.html").read_text()
    assert "<strong>words</strong>" in page
    assert "Team A-run1" in page
    assert 'href="/' not in page
    assert (tmp_path / "archive" / "results" / "contest" / "english-quality" / "tables" / "scores.tex").is_file()
    assert (
        "Team A-run1" in (tmp_path / "archive" / "results" / "contest" / "english-quality" / "report.html").read_text()
    )


def test_reopening_takes_the_final_tables_back(world, browse, make_run):
    track = world.competition()
    user = world.user("Anna", "Team A", admin=True)
    world.hand_in(user, track, make_run(0.5))
    admin = browse().sign_in("Anna")
    admin.post(f"/admin/c/{track.competition.slug}/close")
    world.wait(lambda session: session.get_one(Track, track.id).final)
    rules = {
        "name": "Contest", "opens": "2020-01-01T00:00", "closes": "2120-01-01T00:00", "quota": "10", "share": "50",
        "digits": "4", "finals": "3", "ladder": "1", "baseline_uniform": "1", "baseline_popularity": "1",
    }  # fmt: skip
    assert admin.post(f"/admin/c/{track.competition.slug}", rules).status_code == 303
    assert "Final results" not in browse().get(f"/c/{track.competition.slug}/{track.slug}").text
    admin.post(f"/admin/c/{track.competition.slug}/close")
    world.wait(lambda session: session.get_one(Track, track.id).final)
    with world.site.database.reading() as session:
        assert len(list(session.scalars(select(Act)))) == 3
        assert session.scalars(select(Submission)).one().status == "scored"
