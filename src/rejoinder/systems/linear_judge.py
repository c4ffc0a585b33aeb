"""A judge that reads: ridge regression from TF-IDF of the words to the annotators' distribution."""

import numpy as np
from numpy.typing import NDArray

from rejoinder.runs.judgement import JudgementRun, uniform
from rejoinder.tasks.judgement import Answers, JudgementTask

Floats = NDArray[np.float64]


def judge_by_words(train: JudgementTask, task: JudgementTask, by_character: bool = False) -> JudgementRun:
    """Predict each distribution from a dialogue's (or turn's) words, who said them and where.

    `by_character` takes pairs of characters for words, for text without spaces such as Chinese.
    """
    known, asked = train.truth().answers, task.truth().answers
    found = {
        name: _predict(_texts(train, known[name]), known[name], _texts(task, answers), answers, by_character)
        for name, answers in asked.items()
    }
    return JudgementRun("words", found)


def _texts(task: JudgementTask, answers: Answers) -> list[str]:
    """Return the text of each row, every turn led by a word for its speaker and, counted from both ends, its place."""
    turns = [
        [
            f"{turn.speaker}at{place} {turn.speaker}before{len(d.turns) - place} {turn.text}"
            for place, turn in enumerate(d.turns)
        ]
        for d in task.dialogues
    ]
    return [" ".join(said) for said in turns] if answers.question.roles is None else [t for said in turns for t in said]


def _predict(texts: list[str], known: Answers, new: list[str], asked: Answers, by_character: bool) -> Floats:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import Ridge

    vectors = TfidfVectorizer(
        analyzer="char" if by_character else "word",
        ngram_range=(1, 3) if by_character else (1, 2),
        sublinear_tf=True,
        min_df=2,
    )
    model = Ridge(alpha=1.0, solver="sparse_cg", random_state=0)
    model.fit(vectors.fit_transform(texts), known.distribution)
    values = np.clip(model.predict(vectors.transform(new)), 0, None) * (uniform(asked) > 0)
    values += 1e-9 * uniform(asked)  # so that no row is empty
    return np.asarray(values / values.sum(axis=1, keepdims=True))
