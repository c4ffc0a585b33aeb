"""Damaged Parquet runs."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.damage.files import dumped, example_records, selections
from tests.damage.package import assert_equal_scores, assert_error_is_clear, package_scores, put
from tests.damage.plain import judge_selection

from rejoinder.files import BadInputError
from rejoinder.tasks.truth import read_truth

CHANGES: list[pl.Expr] = [
    pl.lit(None, pl.String), pl.lit(float("nan")), pl.lit(-1.0), pl.lit(1e308), pl.lit("x"), pl.lit(0), pl.lit(True),
    pl.lit(""), pl.lit([1]), pl.lit("NONE"),
]  # fmt: skip


@settings(max_examples=150)
@given(data=st.data())
def test_damaged_tables(folder, data):
    """Parquet has no text to damage: columns are dropped, retyped or shifted, rows dropped, doubled or emptied."""
    examples, choices = data.draw(selections())
    truth = read_truth(put(folder / "truth", dumped(example_records(examples), False)))
    rows = [(id_, option, score) for id_, chosen in choices.items() for option, score in chosen]
    table = pl.DataFrame(rows, schema=["example", "option", "score"], orient="row")
    column = data.draw(st.sampled_from(table.columns))
    row = data.draw(st.integers(0, table.height - 1))
    cell = pl.int_range(pl.len()) == row
    table = data.draw(
        st.sampled_from(
            [
                lambda: table.drop(column),
                lambda: table.rename({column: "other"}),
                lambda: table.with_columns(data.draw(st.sampled_from(CHANGES)).alias(column)),
                lambda: table.with_columns(pl.when(cell).then(None).otherwise(pl.col(column)).alias(column)),
                lambda: table.with_columns(pl.col(column).reverse()),
                lambda: table.with_columns(pl.when(cell).then(-pl.col("score")).otherwise("score").alias("score")),
                lambda: table.filter(~cell),
                lambda: pl.concat([table, table[row]]),
                lambda: table.clear(),
            ]
        )
    )()
    path = folder / "run.parquet"
    table.write_parquet(path)
    answers = {id_: (set(correct) or {"NONE"}, set(options)) for id_, (options, correct) in examples.items()}
    for lenient in (False, True):
        try:
            found, notes = package_scores(truth, path, None, lenient)
        except BadInputError as error:
            assert_error_is_clear(error, path)
            continue
        read = table.select("example", "option", "score").rows()
        listing = [(id_, [(o, s) for i, o, s in read if i == id_]) for id_ in dict.fromkeys(i for i, _, _ in read)]
        expected, clean = judge_selection(answers, listing, None)
        assert_equal_scores(found, expected)
        assert clean or (lenient and notes)
