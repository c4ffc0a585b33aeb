import csv
import io
import json
import re
import subprocess
import sys

import pytest
from polars.exceptions import ComputeError
from typer.main import get_command

from rejoinder import __version__
from rejoinder.cli import app, main
from rejoinder.cli.app import ORDER
from rejoinder.runs import dialeval as dialeval_runs
from rejoinder.sample import helpdesk
from rejoinder.systems.baselines import judge_by_mean, judge_by_popularity, judge_uniformly
from rejoinder.tasks import dialeval


@pytest.fixture(scope="module")
def helpdesk_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("helpdesk")
    helpdesk.write(folder, 60, seed=1)
    truth = dialeval.read_task(folder / "test_en.json").truth()
    train = dialeval.read_task(folder / "train_en.json").truth()
    runs = (judge_uniformly(truth), judge_by_popularity(truth), judge_by_mean(train, truth))
    paths = [folder / name for name in ("uniform.json", "popularity.json", "mean.json.gz")]
    for path, run in zip(paths, runs, strict=True):
        dialeval_runs.write(path, run, truth)
    return folder / "test_en.json", paths


@pytest.fixture
def selection_files(tmp_path):
    (tmp_path / "key.tsv").write_text("1\ta\n2\tNONE\n3\tb,c\n")
    rankings = [
        {
            "example-id": 1,
            "candidate-ranking": [{"candidate-id": "a", "confidence": 0.9}, {"candidate-id": "b", "confidence": 0.1}],
        },
        {
            "example-id": 2,
            "candidate-ranking": [
                {"candidate-id": "x", "confidence": 0.6},
                {"candidate-id": "NONE", "confidence": 0.4},
            ],
        },
        {
            "example-id": 3,
            "candidate-ranking": [{"candidate-id": "c", "confidence": 0.5}, {"candidate-id": "a", "confidence": 0.3}],
        },
    ]
    (tmp_path / "run.json").write_text(json.dumps(rankings))
    return tmp_path / "key.tsv", tmp_path / "run.json"


QUICK = ("--trials", 200, "--resamples", 200)


def test_help_imports_nothing_heavy():
    script = "import sys; from rejoinder.cli import app; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert {"numpy", "polars", "scipy", "torch", "altair", "sklearn", "jinja2", "msgspec", "rich"}.isdisjoint(loaded)


def test_version(cli):
    assert cli("--version") == (0, f"rejoinder {__version__}\n", "")


def commands(group, path=()):
    """Yield every command, and every group of them, with the words that lead to it."""
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))


COMMANDS = dict(commands(get_command(app)))


@pytest.mark.parametrize("path", [path for path, command in COMMANDS.items() if not hasattr(command, "commands")])
def test_every_command_has_help_with_an_example_and_a_word_on_every_option(cli, path):
    code, out, _ = cli(*path, "--help")
    assert code == 0
    assert f"Example: rejoinder {' '.join(path)}" in out
    assert all(option.help for option in COMMANDS[path].params)


@pytest.mark.parametrize("path", [path for path, command in COMMANDS.items() if hasattr(command, "commands")])
def test_lists_of_commands_are_in_order_and_nothing_in_them_is_cut_off(cli, path):
    code, out, _ = cli(*path, "--help")
    assert code == 0
    listed = [line.split()[0] for line in out.partition("Commands:")[2].splitlines() if line.strip()]
    assert listed == list(ORDER if not path else COMMANDS[path].commands)
    assert "..." not in out.partition("Commands:")[2]


def test_score_json_has_the_documented_shape(cli, selection_files):
    code, out, err = cli("score", *selection_files, "--json", *QUICK)
    assert code == 0
    assert err == ""
    found = json.loads(out)
    assert set(found) == {"signature", "runs"}
    (run,) = found["runs"]
    assert (run["run"], run["n"]) == ("run", 3)
    means = {name: figures["mean"] for name, figures in run["measures"].items()}
    assert means["R@1"] == pytest.approx((1 + 0 + 0.5) / 3)
    assert means["R@10"] == pytest.approx((1 + 1 + 0.5) / 3)
    assert means["MRR"] == pytest.approx((1 + 0.5 + 1) / 3)
    assert means["MAP"] == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert means["hits@10"] == 1
    assert all(set(figures) >= {"mean", "low", "high"} for figures in run["measures"].values())
    assert "ties:listed-order" in found["signature"]


def test_score_is_reproducible_to_the_byte(cli, helpdesk_files):
    truth, runs = helpdesk_files
    first = cli("score", truth, *runs, "--json", *QUICK)
    assert first == cli("score", truth, *runs, "--json", *QUICK)
    assert first != cli("score", truth, *runs, "--json", *QUICK, "--seed", 1)


def test_score_names_the_measures_of_dialeval(cli, helpdesk_files):
    truth, runs = helpdesk_files
    _, out, _ = cli("score", truth, *runs, "--json", *QUICK)
    found = json.loads(out)["runs"]
    assert [run["run"] for run in found] == ["uniform", "popularity", "mean"]
    expected = ["NMD(A)", "RSNOD(A)", "NMD(S)", "RSNOD(S)", "NMD(E)", "RSNOD(E)", "JSD", "RNSS"]
    assert list(found[0]["measures"]) == expected


def test_score_prints_tables_for_people_and_for_papers(cli, helpdesk_files):
    truth, runs = helpdesk_files
    arguments = ("score", truth, *runs, "-m", "NMD(A)", *QUICK)
    terminal, markdown, latex, table = (
        cli(*arguments, *style)[1] for style in ((), ("--markdown",), ("--latex",), ("--csv",))
    )
    assert "NMD(A) ↓" in terminal
    assert "| run | NMD(A) ↓ |" in markdown
    assert r"\begin{tabular}" in latex
    rows = list(csv.DictReader(io.StringIO(table)))
    assert {row["run"] for row in rows} == {"uniform", "popularity", "mean"}
    for text in (terminal, markdown, latex):
        assert "seed:0|rejoinder:" in text


def test_styles_exclude_each_other(cli, selection_files):
    code, _, err = cli("score", *selection_files, "--json", "--csv")
    assert code == 2
    assert "--json and --csv exclude each other" in err


def test_break_down_by_a_column_of_the_truth(cli, helpdesk_files):
    truth, runs = helpdesk_files
    _, out, _ = cli("score", truth, runs[0], "--by", "turns", "--json", *QUICK)
    assert json.loads(out)["by"]["column"] == "turns"
    groups = json.loads(out)["by"]["groups"]
    counts = [len(d["turns"]) for d in json.loads(truth.read_text())]
    assert {value: runs[0]["n"] for value, runs in groups.items()} == {
        str(n): counts.count(n) for n in sorted(set(counts))
    }
    _, out, _ = cli("score", truth, *runs, "--by", "turns", "--markdown", "-m", "NMD(A)", *QUICK)
    first, *tables = ([line.split(" | ")[0] for line in part.splitlines()[3:]] for part in out.split("\n**"))
    assert [[name for name in names if name.startswith("| ")] for names in tables] == [
        [name for name in first if name.startswith("| ")]
    ]
    code, _, err = cli("score", truth, runs[0], "--by", "colour")
    assert code == 2
    assert "no column 'colour' to break down by; there are turns" in err


def test_break_down_by_a_table_of_ones_own(cli, selection_files, tmp_path):
    (tmp_path / "groups.csv").write_text("id,kind\n1,x\n2,y\n3,x\n")
    _, out, _ = cli(
        "score", *selection_files, "--groups", tmp_path / "groups.csv", "--by", "kind", "--csv", "-m", "MRR", *QUICK
    )
    means = {row["by"]: float(row["mean"]) for row in csv.DictReader(io.StringIO(out))}
    assert means == pytest.approx({"": 2.5 / 3, "x": 1.0, "y": 0.5})
    (tmp_path / "groups.csv").write_text("id,kind\n1,x\n2,y\n")
    code, _, err = cli("score", *selection_files, "--groups", tmp_path / "groups.csv", "--by", "kind")
    assert (code, "id 3 of the truth is missing" in err) == (2, True)


def test_log2_shows_the_sites_figures(cli, helpdesk_files):
    truth, runs = helpdesk_files
    _, out, _ = cli("score", truth, runs[0], "-m", "JSD", "--log2", "--markdown", *QUICK)
    _, plain, _ = cli("score", truth, runs[0], "-m", "JSD", "--json", *QUICK)
    import math

    mean = json.loads(plain)["runs"][0]["measures"]["JSD"]["mean"]
    assert f"{-math.log2(mean):.4f}" in out


def test_reference_rows_are_marked_as_published(cli, helpdesk_files):
    truth, runs = helpdesk_files
    _, out, _ = cli("score", truth, *runs[:2], "--reference", "dialeval1/english", "--markdown", *QUICK)
    assert re.search(r"BL-lstm \(dialeval1/english\) \| 0\.1591 \| 0\.2271", out)
    code, _, err = cli("score", truth, *runs[:2], "--reference", "dialeval1/latin")
    assert (code, "no published rows 'dialeval1/latin'" in err) == (2, True)


def test_unknown_measure(cli, selection_files):
    code, out, err = cli("score", *selection_files, "-m", "BLEU")
    assert (code, out) == (2, "")
    assert err == "error: no measure 'BLEU' of ranking; there are MRR, MAP, DSTC7, F90, R@k, hits@k, P@k\n"


def test_bad_input_is_one_line_and_exit_code_2(cli, selection_files, tmp_path):
    truth, run = selection_files
    run.write_text(run.read_text().replace('"NONE"', '"x"'))
    code, out, err = cli("score", truth, run)
    assert (code, out) == (2, "")
    assert err == f"error: {run}: example 2: candidate-id: 'x' is chosen twice\n"
    code, _, err = cli("score", tmp_path / "absent.json", run)
    assert (code, err) == (2, f"error: {tmp_path / 'absent.json'}: no such file\n")


def test_lenient_says_what_it_did(cli, selection_files):
    truth, run = selection_files
    run.write_text(json.dumps(json.loads(run.read_text())[:2]))
    code, _, err = cli("score", truth, run)
    assert (code, "example 3" in err) == (2, True)
    code, out, err = cli("score", truth, run, "--lenient", "--json", *QUICK)
    assert code == 0
    assert err == f"note: {run}: 1 missing examples were scored as wrong, first 3\n"
    assert "lenient:yes" in json.loads(out)["signature"]
    assert json.loads(out)["notes"] == [err.removeprefix("note: ").rstrip()]


def test_the_format_can_be_forced(cli, selection_files):
    truth, run = selection_files
    code, _, err = cli("score", truth, run, "--format", "trec")
    assert (code, "expected topic Q0 option rank score name" in err) == (2, True)


def test_compare_prints_the_papers_tables_and_writes_a_report(cli, helpdesk_files, tmp_path):
    truth, runs = helpdesk_files
    code, out, err = cli("compare", truth, *runs, "--out", tmp_path / "out", "-m", "NMD(A)", "-m", "RSNOD(A)", *QUICK)
    assert code == 0
    assert "Statistical significance in terms of NMD(A)" in out
    assert "report.html" in err
    written = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*")}
    assert {"report.html", "scores.json", "charts/means.svg", "charts/means.png"} <= written
    assert {
        "tables/scores.csv",
        "tables/scores.tex",
        "tables/significance-NMD(A).md",
        "tables/significance.csv",
    } <= written
    assert (tmp_path / "out/charts/p-values-NMD(A).png").read_bytes().startswith(b"\x89PNG")


def test_compare_needs_two_runs(cli, helpdesk_files):
    truth, runs = helpdesk_files
    code, _, err = cli("compare", truth, runs[0])
    assert (code, "at least two runs" in err) == (2, True)


def test_runs_of_one_name_are_told_apart(cli, selection_files, tmp_path):
    truth, run = selection_files
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "run.json").write_bytes(run.read_bytes())
    _, out, _ = cli("score", truth, tmp_path / "a/run.json", tmp_path / "b/run.json", "--json", *QUICK)
    assert [row["run"] for row in json.loads(out)["runs"]] == ["a/run", "b/run"]


def test_overview_of_score_files(cli, selection_files, tmp_path):
    _, out, _ = cli("score", *selection_files, "--json", *QUICK)
    (tmp_path / "one.json").write_text(out)
    code, out, _ = cli("overview", f"t1={tmp_path / 'one.json'}", f"t2={tmp_path / 'one.json'}", "--csv", "-m", "MRR")
    assert code == 0
    assert out.splitlines()[:2] == ["system,t1,t2,average rank,tasks", "run,0.8333,0.8333,1.00,2 of 2"]
    code, _, err = cli("overview", f"t1={selection_files[1]}")
    assert (code, "not what `rejoinder score --json` prints" in err) == (2, True)


def test_an_overview_of_judged_tasks_is_by_their_first_measure(cli, helpdesk_files, tmp_path):
    truth, runs = helpdesk_files
    _, out, _ = cli("score", truth, *runs, "--json", "-m", "RSNOD(S)", "-m", "NMD(A)", *QUICK)
    (tmp_path / "one.json").write_text(out)
    assert cli("overview", f"en={tmp_path / 'one.json'}") == cli(
        "overview", f"en={tmp_path / 'one.json'}", "-m", "RSNOD(S)"
    )


def test_overview_of_the_published_results(cli):
    _, out, _ = cli("overview", "published", "--csv")
    assert out.splitlines()[1].startswith("team 3,0.8185,0.1455,")


def test_published_lists_and_prints(cli):
    _, out, _ = cli("published", "dialeval1")
    assert "rank_correlation" in out
    _, out, _ = cli("published", "dialeval1", "--table", "rank_correlation", "--where", "language=chinese", "--csv")
    assert len(out.splitlines()) == 5
    for style in ((), ("--markdown",), ("--latex",)):
        _, out, _ = cli("published", "dialeval1", "--table", "runs", *style)
        assert "Section" not in out
        _, out, _ = cli("published", "dialeval1", "--table", "data", *style)
        assert "Section 2.3 announces four nugget types; table 3 lists five." in out
    code, _, err = cli("published", "dialeval1", "--table", "nothing")
    assert (code, "dialeval1 has no table 'nothing'" in err) == (2, True)


def test_convert_and_back_keeps_the_score(cli, selection_files, tmp_path):
    truth, run = selection_files
    _, before, _ = cli("score", truth, run, "--json", *QUICK)
    current = run
    for step, name in enumerate(("trec", "parquet", "dstc7")):
        following = tmp_path / f"{step}" / f"run.{name}"
        assert cli("convert", current, "--truth", truth, "--to", name, "--out", following)[0] == 0
        current = following
    current = current.rename(current.with_name("run.json"))
    _, after, _ = cli("score", truth, current, "--json", *QUICK)
    assert before == after
    code, _, err = cli("convert", run, "--truth", truth, "--to", "dialeval", "--out", tmp_path / "x.json")
    assert (code, "not a format for this kind of run" in err) == (2, True)
    assert not (tmp_path / "x.json").exists()


def test_sample_writes_each_world(cli, tmp_path):
    expected = {"irc": "*.raw.txt", "advising": "dialogues.json", "films": "movie_kb.txt", "helpdesk": "train_en.json"}
    for world, pattern in expected.items():
        code, _, err = cli("sample", world, "--out", tmp_path / world, "--size", 20, "--seed", 3)
        assert code == 0
        assert world in err
        assert list((tmp_path / world).glob(pattern))


def test_a_group_is_scored_on_its_own(cli, selection_files, tmp_path):
    truth, run = selection_files
    (tmp_path / "groups.csv").write_text('id,g\n1,10\n2,""\n3,9\n')
    arguments = ("score", truth, run, "--groups", tmp_path / "groups.csv", "--by", "g", "-m", "F90", "--csv", *QUICK)
    _, out, _ = cli(*arguments)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["by"], row["n"]) for row in rows] == [("", "3"), ("9", "1"), ("10", "1"), ("(empty)", "1")]
    means = {row["by"]: float(row["mean"]) for row in rows}
    # 1: only `a` is selected; 2: both are, one right; 3: both are, one of two right
    assert means == pytest.approx({"": 2 * 3 / (5 + 4), "10": 1.0, "(empty)": 2 / 3, "9": 2 / 4})
    assert out == cli(*arguments)[1]


def test_a_pipe_is_refused(cli, selection_files, tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe")
    code, _, err = cli("score", tmp_path / "pipe", selection_files[1])
    assert (code, "is a pipe or a device; expected a regular file" in err) == (2, True)


def test_names_that_cannot_be_printed_are_marked(cli, selection_files, tmp_path):
    truth, run = selection_files
    odd = tmp_path / "c\x01d.json"
    odd.write_bytes(run.read_bytes())
    _, out, _ = cli("score", truth, odd, "--json", *QUICK)
    assert json.loads(out)["runs"][0]["run"] == "c\ufffdd"


def test_every_run_has_a_name_of_its_own(cli, selection_files, tmp_path):
    truth, run = selection_files
    names = ("a/r.json", "a/r.txt", "a/r#2.json", "b/r#2.json")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(run.read_bytes())
    _, out, _ = cli("score", truth, *(tmp_path / name for name in names), "--json", *QUICK)
    found = [row["run"] for row in json.loads(out)["runs"]]
    assert len(found) == len(set(found)) == 4


def test_a_run_that_answers_none_of_the_measures_is_named(cli, helpdesk_files, tmp_path):
    truth, runs = helpdesk_files
    records = json.loads(runs[0].read_text())
    (tmp_path / "quality.json").write_text(json.dumps([{k: v for k, v in r.items() if k != "nugget"} for r in records]))
    code, _, err = cli("score", truth, runs[0], tmp_path / "quality.json", "-m", "JSD", *QUICK)
    assert (code, err) == (2, f"error: {tmp_path / 'quality.json'}: answers nothing that JSD could score\n")
    _, out, _ = cli("score", truth, runs[0], tmp_path / "quality.json", "--json", *QUICK)
    assert "JSD" not in json.loads(out)["runs"][1]["measures"]


def test_options_that_would_be_ignored_are_refused(cli, selection_files, helpdesk_files, tmp_path):
    truth, run = selection_files
    (tmp_path / "groups.csv").write_text("id,g\n1,x\n2,y\n3,x\n")
    (tmp_path / "names.txt").write_text("a\n")
    refused = {
        ("score", truth, run, "--groups", tmp_path / "groups.csv"): "--groups needs --by",
        ("score", truth, run, "--groups", tmp_path, "--by", "g"): "is a folder; expected a file",
        ("score", helpdesk_files[0], helpdesk_files[1][0], "--entities", tmp_path / "names.txt"): "has no use",
        ("score", truth, run, "--log2"): "--log2 is for distances, and R@1 is none",
        ("score", helpdesk_files[0], helpdesk_files[1][0], "--log2", "--json"): "--log2 is for tables",
        ("score", truth, run, "--reference", "dialeval1/english"): "have none of the measures",
        ("published", "--table", "results"): "--table needs a paper",
        ("published", "dstc7", "--table", "results", "--where", "team"): "expected COLUMN=VALUE",
        (
            "published",
            "dstc7",
            "--table",
            "results",
            "--where",
            "dataset=zzz",
        ): "dataset is one of advising-1, advising-2, ubuntu",
        ("overview", "a=1.json", "b"): "no such file",
    }
    for arguments, message in refused.items():
        code, _, err = cli(*arguments)
        assert (code, message in err) == (2, True), (arguments, err)


def test_a_folder_in_use_is_not_mixed_up(cli, selection_files, helpdesk_files, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("precious")
    for arguments in (("sample", "irc"), ("compare", helpdesk_files[0], *helpdesk_files[1])):
        code, _, err = cli(*arguments, "--out", tmp_path / "mine")
        assert (code, "is not empty; give another folder" in err) == (2, True)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]
    for measure in ("JSD", "RNSS"):
        cli("compare", helpdesk_files[0], *helpdesk_files[1], "--out", tmp_path / "out", "-m", measure, *QUICK)
    assert not list((tmp_path / "out").rglob("*JSD*"))


def test_references_of_two_sources_stand_side_by_side(cli, selection_files):
    _, out, _ = cli(
        "score", *selection_files, "--reference", "dstc7/ubuntu/1", "--reference", "dstc7/ubuntu/4", "--json", *QUICK
    )
    rows = json.loads(out)["published"]
    assert rows["team 3 (dstc7/ubuntu/1)"]["MRR"] == 0.735
    assert rows["team 3 (dstc7/ubuntu/4)"]["MRR"] == 0.742


def test_convert_writes_two_files_or_none(cli, selection_files, tmp_path):
    truth, run = selection_files
    same = tmp_path / "same"
    code, _, err = cli("convert", run, "--truth", truth, "--to", "trec", "--out", same, "--qrels", same)
    assert (code, err) == (2, f"error: {same}: would be overwritten; name another file to write\n")
    assert not same.exists()


def test_convert_says_what_a_format_cannot_hold(cli, tmp_path):
    (tmp_path / "key.tsv").write_text("1\to5\n")
    (tmp_path / "long.trec").write_text("".join(f"1 Q0 o{n} {n} {200 - n} x\n" for n in range(150)))
    code, _, err = cli(
        "convert",
        tmp_path / "long.trec",
        "--truth",
        tmp_path / "key.tsv",
        "--to",
        "dstc7",
        "--out",
        tmp_path / "o.json",
    )
    assert (code, "1 ranking cut to the best 100 choices" in err) == (0, True)
    (tmp_path / "low.trec").write_text("1 Q0 o5 1 -3.5 x\n")
    code, _, err = cli(
        "convert", tmp_path / "low.trec", "--truth", tmp_path / "key.tsv", "--to", "dstc7", "--out", tmp_path / "p.json"
    )
    assert (code, "cannot hold negative confidences" in err) == (2, True)


def test_a_terminal_without_arrows_gets_question_marks(selection_files):
    import os

    done = subprocess.run(
        [sys.executable, "-c", "from rejoinder.cli import main; main()", "score", *map(str, selection_files)],
        capture_output=True, env=os.environ | {"PYTHONIOENCODING": "ascii"}, check=True,
    )  # fmt: skip
    assert b"R@1 ?" in done.stdout


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError("33200 requested and 10208 written"), "output cannot be written (no room for all of it)"),
        (OSError(28, "No space left on device", "x"), "[Errno 28] No space left on device: 'x'"),
        (OSError("odd"), "odd"),
        (
            ComputeError("parquet: underlying IO error: No space left on device (os error 28)"),
            "output cannot be written (No space left on device)",
        ),
    ],
)
def test_a_full_disk_is_one_line_whichever_library_meets_it(monkeypatch, capsys, error, line):
    def fill():
        raise error

    monkeypatch.setattr("rejoinder.cli.app", fill)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert (stopped.value.code, capsys.readouterr().err) == (1, f"error: {line}\n")


def test_other_errors_are_shown_as_they_are(monkeypatch):
    monkeypatch.setattr("rejoinder.cli.app", lambda: {}["absent"])
    with pytest.raises(KeyError):
        main()


def test_out_of_memory_is_one_line(monkeypatch, capsys):
    torch = pytest.importorskip("torch")

    def greedy():
        torch.empty(2**46)

    monkeypatch.setattr("rejoinder.cli.app", greedy)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 1
    assert capsys.readouterr().err == "error: out of memory; this needs more than there is\n"
    monkeypatch.setattr("rejoinder.cli.app", lambda: torch.ones(2) @ torch.ones(3))
    with pytest.raises(RuntimeError, match="inconsistent tensor size"):
        main()
