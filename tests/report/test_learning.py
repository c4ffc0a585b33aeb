import json

import pytest

from rejoinder.report.learning import draw_curves


def test_every_history_gets_its_curve(tmp_path):
    entries = [{"epoch": n, "step": 10 * n, "loss": 2.0 / n, "seconds": 1.0, "dev": 0.1 * n} for n in (1, 2, 3)]
    for name, history in {"a": entries, "b": [{k: v for k, v in e.items() if k != "dev"} for e in entries]}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "history.json").write_text(json.dumps(history))
    (tmp_path / "history.json").write_text(json.dumps(entries[:1]))  # one point is no curve
    assert draw_curves(tmp_path) == ([tmp_path / "a" / "curve.svg", tmp_path / "b" / "curve.svg"], [])
    assert ">dev<" in (tmp_path / "a" / "curve.svg").read_text()
    assert ">dev<" not in (tmp_path / "b" / "curve.svg").read_text()


@pytest.mark.parametrize("content", ["", '[{"step": 1, "lo', "{}", "[1, 2]", '[{"step": 1}, {"step": 2}]'])
def test_a_damaged_history_has_no_curve_and_hides_no_other(tmp_path, content):
    (tmp_path / "parts").mkdir()
    (tmp_path / "history.json").write_text(content)
    (tmp_path / "parts" / "history.json").write_text(json.dumps([{"step": n, "loss": 2.0 / n} for n in (1, 2)]))
    drawn, notes = draw_curves(tmp_path)
    assert drawn == [tmp_path / "parts" / "curve.svg"]
    assert len(notes) == 1
    assert notes[0].startswith(f"{tmp_path / 'history.json'}: ")
    assert notes[0].endswith("; the model is whole, but has no curve")
