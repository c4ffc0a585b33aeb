r"""Make the runs that `benchmarks.rankers` compares: train each recipe, and let it answer its subtask's test.

Needs a collection below REJOINDER_RANKERS (default build/rankers), for most NETWORKS a GPU, for mpnet its weights as
well. The first line is for the collection of the rows that were kept: links depend on how a CPU multiplies.

export OPENBLAS_CORETYPE=SkylakeX
rejoinder disentangle train --annotations DATA/irc-links/train --out links.model
rejoinder build ubuntu --logs DATA/ubuntu-logs --logs DATA/irc-links/train --model links.model --turns \
    --knowledge DATA/manpages --out build/rankers/ubuntu
python -m benchmarks.ranker_runs                               # all that are not there; remove one to make it anew
python -m benchmarks.ranker_runs ubuntu/1/esim ubuntu/2/minilm # these, in this order

Started several times at once, each passes over what another is at, and comes back to what is made of that. They
may share a GPU by CUDA's MPS, but set no CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: on an H200 (driver 580, torch 2.11) it made
some processes' products wrong, of the same weights and texts, without a word.

Networks for Ubuntu learn once, from `turns`, and choose on subtask 1's dev; Advising's learn from subtask 1 or 3, and
so do quick ones, which are for those who have no GPU. What is made of them, or taught by them, takes them as they were
trained and learns its weights on its own subtask's dev; a stack in a cascade, which sees lists alone, on that of
subtask 1.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any, Literal

import msgspec

from benchmarks.measuring import PYTHON, run
from rejoinder.errors import UserError
from rejoinder.files import fingerprint
from rejoinder.folders import HeldError, alone_in
from rejoinder.model import Assignment, ModelCard, load_model, predict, teacher_card, train_model
from rejoinder.recipe import CARD, Recipe, is_model, make_system, read_parts, read_recipe
from rejoinder.records import read_yaml
from rejoinder.runs.convert import write_run
from rejoinder.tasks.load import load_task

REJOINDER = Path(PYTHON).parent / "rejoinder"
ROOT = Path(__file__).parent.parent
FOLDER = Path(os.environ.get("REJOINDER_RANKERS", ROOT / "build" / "rankers"))
TESTS = {"ubuntu": "test", "advising": "test_2"}
SESSIONS, PARTIAL = 815, 5_000
"""As many advising sessions as in the paper, and how many partial conversations are made of them."""

_PAUSE = 2
"""Seconds until what another process holds is asked for again."""

WORDS = {
    ("ubuntu", 1): ("random", "unsaid", "voice", "tfidf", "bm25", "words"),
    ("ubuntu", 2): ("bm25",),
    ("ubuntu", 4): ("random", "words", "words-or-none"),
    ("ubuntu", 5): ("words", "informed-words-without", "informed-words"),
    ("advising", 1): ("random", "tfidf", "bm25", "words"),
    ("advising", 3): ("random", "tfidf", "bm25", "words"),
    ("advising", 4): ("random", "words", "words-or-none"),
    ("advising", 5): ("words", "informed-words-without", "informed-words"),
}
"""By corpus and subtask, recipes that need no network."""
_ADVISING = (
    *("minilm", "dual-encoder-small", "dual-encoder", "esim", "memory-network", "memory-network-taught"),
    *("bi-encoder", "poly-encoder", "late-encoder", "cross-encoder", "cascade-bi", "stacked"),
)
NETWORKS = {
    ("ubuntu", 1): (
        *("minilm", "words-and-minilm", "cascade", "bi-encoder-quick", "cascade-quick"),
        *("bi-encoder-quick-mpnet", "cascade-quick-mpnet"),
        *("dual-encoder", "esim", "memory-network"),
        *("bi-encoder", "poly-encoder", "late-encoder", "cross-encoder", "hard-bi-encoder"),
        *("cascade-bi", "cascade-late", "cascade-read", "stacked"),
        *("bi-encoder-mpnet", "bi-encoder-mpnet-taught", "late-encoder-mpnet-taught"),
        *("bi-encoder-taught", "late-encoder-taught"),
        *("cascade-taught", "cascade-bi-mpnet", "cascade-late-mpnet", "cascade-read-mpnet"),
    ),
    ("ubuntu", 2): (
        *("minilm", "cascade", "bi-encoder-quick", "cascade-quick", "cascade-quick-mpnet"),
        *("memory-network", "bi-encoder", "hard-bi-encoder"),
        *("cascade-bi", "cascade-late", "cascade-read"),
        *("bi-encoder-taught", "bi-encoder-mpnet", "bi-encoder-mpnet-taught"),
        *("cascade-taught", "cascade-bi-mpnet", "cascade-late-mpnet", "cascade-read-mpnet"),
    ),
    ("ubuntu", 4): (
        *("words-and-minilm", "minilm-or-none", "cascade-quick", "quick-or-none"),
        *("cascade-quick-mpnet", "quick-mpnet-or-none"),
        *("cascade-bi", "cascade-late", "bi-or-none"),
        *("cascade-taught", "cascade-late-mpnet", "taught-or-none", "late-mpnet-or-none"),
    ),
    ("ubuntu", 5): (
        *("words-and-minilm", "informed-minilm", "cascade-bi", "cascade-late", "informed-bi"),
        *("cascade-taught", "cascade-late-mpnet", "informed-taught"),
    ),
    ("advising", 1): _ADVISING,
    ("advising", 3): _ADVISING,
    ("advising", 4): ("cascade-bi", "cascade-late", "bi-or-none"),
    ("advising", 5): ("cascade-bi", "cascade-late", "informed-bi"),
}
"""By corpus and subtask, recipes that need networks; what they are made of, or taught by, is trained before them."""


def main(asked: list[str]) -> None:
    every = [(*key, name) for made in (WORDS, NETWORKS) for key, names in made.items() for name in names]
    known = {"/".join(map(str, one)): one for one in every}
    unknown = set(asked) - set(known)
    if unknown:
        sys.exit(f"no run called {', '.join(sorted(unknown))}; expected such as ubuntu/1/esim")
    waiting = [known[name] for name in asked or known]
    if any(corpus == "advising" for corpus, *_ in waiting):
        build_advising()
    whole = True
    while waiting:
        tried = {one: _tried(*one) for one in waiting}
        whole = whole and "left out" not in tried.values()
        if "made" not in tried.values() and "held" in tried.values():
            time.sleep(_PAUSE)
        waiting = [one for one in waiting if tried[one] == "held"]
    sys.exit(0 if whole else 1)


def _tried(corpus: str, subtask: int, name: str) -> Literal["made", "held", "left out"]:
    """Make a run, unless another process is at it; say why if that cannot be done here."""
    try:
        answer(corpus, subtask, name)
    except HeldError:
        return "held"
    except UserError as error:
        print(f"{corpus}/{subtask}/{name} was left out: {error}", flush=True)
        return "left out"
    print(f"{corpus}/{subtask}/{name}", flush=True)
    return "made"


def build_advising() -> None:
    sample, tasks = FOLDER / "advising-sample", FOLDER / "advising"
    if tasks.is_dir():
        return
    run([REJOINDER, "sample", "advising", "--size", str(SESSIONS), "--out", sample])
    sources = ["--dialogues", sample / "dialogues.json", "--courses", sample / "courses.json"]
    run([REJOINDER, "build", "advising", *sources, "--train-size", str(PARTIAL), "--out", tasks])


def answer(corpus: str, subtask: int, name: str) -> None:
    """Let a recipe, by its name or file, answer a subtask's test if it has not yet."""
    out = FOLDER / "runs" / corpus / f"subtask_{subtask}" / f"{Path(name).stem}.json"
    with alone_in(FOLDER / "held" / f"{corpus}-{subtask}-{out.stem}", out):
        if out.is_file():
            return
        test = FOLDER / corpus / f"subtask_{subtask}" / TESTS[corpus]
        task: Any = load_task(test)
        found = predict(*load_model(_model(corpus, subtask, name)), test, task)
        out.parent.mkdir(parents=True, exist_ok=True)
        write_run(out, found, task.unanswered(), "dstc7")


def _model(corpus: str, subtask: int, name: str) -> Path:
    """Return the folder of a recipe's model, which is trained if it is not there, or by what the recipe once was."""
    recipe = read_recipe(name)
    network = recipe.system == "neural-ranker"
    learned_from = 3 if (corpus, subtask) == ("advising", 3) else 1 if network else subtask
    own = recipe.name if network and corpus == "ubuntu" else f"{corpus}-{learned_from}-{recipe.name}"
    folder = FOLDER / "models" / own
    wanted = _with_models(recipe, corpus, subtask)
    data = FOLDER / corpus / f"subtask_{learned_from}"
    from_turns = network and corpus == "ubuntu" and "quick" not in recipe.name
    train = FOLDER / "ubuntu" / "turns" / "train" if from_turns else data / "train"
    if not _is_made_of(folder, wanted, train, data / "dev"):
        given = Assignment(
            recipe=wanted,
            train=(train, load_task(train)),
            dev=(data / "dev", load_task(data / "dev")),
        )
        train_model(given, folder)
    return folder


def _is_made_of(folder: Path, recipe: Recipe, train: Path, dev: Path) -> bool:
    """Whether a model was trained by a recipe, on data (if these are here), with parts and by a teacher as they are."""
    if not is_model(str(folder)):
        return False
    card, system = read_yaml(folder / CARD, ModelCard), make_system(recipe)
    if card.recipe != recipe or card.teacher != teacher_card(system):
        return False
    learned_from = ((card.train, train), (card.dev, dev))
    if any(path.exists() and source and source.fingerprint != fingerprint(path) for source, path in learned_from):
        return False
    parts = enumerate(system.part_sources())
    held = ((Path(source), folder / "parts" / str(number)) for number, source in parts if is_model(source))
    return all(_contents(source) == _contents(part) for source, part in held)


def _contents(model: Path) -> dict[Path, str]:
    """Return the fingerprints of a model's files, its parts' too."""
    return {path.relative_to(model): fingerprint(path) for path in model.rglob("*") if path.is_file()}


def _with_models(recipe: Recipe, corpus: str, subtask: int) -> Recipe:
    """Put models in the places of parts and teachers that are networks or made of such."""
    system = make_system(recipe)
    models = {}
    for source in {*system.part_sources(), *filter(None, [system.teacher_source()])}:
        part = read_recipe(source)
        if any(one.system == "neural-ranker" for one in (part, *read_parts(part))):
            lists = 1 if subtask == 2 and recipe.system == "cascade" else subtask
            models[source] = str(_model(corpus, lists, source))
    return msgspec.structs.replace(recipe, settings=_replaced(recipe.settings, models))


def _replaced(settings: Any, models: dict[str, str]) -> Any:
    if isinstance(settings, dict):
        return {models.get(name, name): _replaced(value, models) for name, value in settings.items()}
    if isinstance(settings, list | tuple):
        return [_replaced(value, models) for value in settings]
    return models.get(settings, settings) if isinstance(settings, str) else settings


if __name__ == "__main__":
    main(sys.argv[1:])
