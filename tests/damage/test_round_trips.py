"""What is written comes back, in every format."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.damage.files import NAMES, dumped, example_records, judgements, ranking_records, selections
from tests.damage.package import put

from rejoinder.measures.scoring import read_run
from rejoinder.runs.convert import write_run, write_truth_as_qrels
from rejoinder.tasks import dialeval, dstc7
from rejoinder.tasks.truth import read_truth


def written(folder: Path, ending: str, write: Callable[[Path], None]) -> Path:
    """Write twice, see that the bytes are equal, and return the file."""
    first, second = (folder / f"{name}{ending}" for name in ("first", "second"))
    for path in (first, second):
        path.unlink(missing_ok=True)
        write(path)
    assert first.read_bytes() == second.read_bytes()
    return second


@pytest.mark.parametrize("ending", ["", ".gz"])
@settings(max_examples=40)
@given(pair=selections(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)))
def test_selections_come_back_from_every_format(folder, pair, ending):
    examples, choices = pair
    path = put(folder / "truth", dumped(example_records(examples), False))
    truth = read_truth(path)
    again = read_truth(written(folder, ending, lambda out: dstc7.write_examples(out, dstc7.read_examples(path))))
    assert list(dstc7.read_examples(path)) == list(dstc7.read_examples(folder / f"second{ending}"))
    assert again.correct.equals(truth.correct)
    assert again.options.equals(truth.options)
    judged = read_truth(written(folder, ending, lambda out: write_truth_as_qrels(out, truth)))
    assert judged.ids.equals(truth.ids)
    assert judged.correct.equals(truth.correct)
    run = read_run(put(folder / "run", dumped(ranking_records(choices), False)), truth)
    for format_ in ("dstc7", "trec", "parquet"):
        file = written(folder, ending, lambda out, format_=format_: write_run(out, run, truth, format_))
        assert read_run(file, truth).choices.equals(run.choices)


@settings(max_examples=40)
@given(pair=selections(NAMES.filter(lambda name: "," not in name)))
def test_keys_and_tasks_come_back(folder, pair):
    path = put(folder / "truth", dumped(example_records(pair[0]), False))
    truth = read_truth(path)
    for ending in ("", ".gz"):
        key = read_truth(written(folder, ending, lambda out: dstc7.write_answer_key(out, truth)))
        assert key.ids.equals(truth.ids)
        assert key.correct.equals(truth.correct)
    task = dstc7.read_task(path)
    task.save(folder / "task")
    assert read_truth(folder / "task").correct.equals(truth.correct)
    assert read_truth(folder / "task").options.equals(truth.options)


@pytest.mark.parametrize("ending", ["", ".gz"])
@settings(max_examples=40)
@given(pair=judgements())
def test_judgements_come_back_from_every_format(folder, pair, ending):
    path = put(folder / "truth", dumped(pair[0], False))
    truth = read_truth(path)
    again = written(folder, ending, lambda out: dialeval.write_dialogues(out, dialeval.read_dialogues(path)))
    assert list(dialeval.read_dialogues(again)) == list(dialeval.read_dialogues(path))
    run = read_run(put(folder / "run", dumped(pair[1], False)), truth)
    for format_ in ("dialeval", "parquet"):
        file = written(folder, ending, lambda out, format_=format_: write_run(out, run, truth, format_))
        back = read_run(file, truth).distributions
        assert back.keys() == run.distributions.keys()
        for question, values in run.distributions.items():
            assert np.allclose(back[question], values, rtol=0, atol=1e-15)
