import json

from rejoinder.report.learning import draw_curves


def test_every_history_gets_its_curve(tmp_path):
    entries = [{"epoch": n, "step": 10 * n, "loss": 2.0 / n, "seconds": 1.0, "dev": 0.1 * n} for n in (1, 2, 3)]
    for name, history in {"a": entries, "b": [{k: v for k, v in e.items() if k != "dev"} for e in entries]}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "history.json").write_text(json.dumps(history))
    (tmp_path / "history.json").write_text(json.dumps(entries[:1]))  # one point is no curve
    assert draw_curves(tmp_path) == [tmp_path / "a" / "curve.svg", tmp_path / "b" / "curve.svg"]
    assert ">dev<" in (tmp_path / "a" / "curve.svg").read_text()
    assert ">dev<" not in (tmp_path / "b" / "curve.svg").read_text()
