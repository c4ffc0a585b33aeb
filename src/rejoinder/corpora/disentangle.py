"""Untangles conversations: links each message of a channel to the message it answers, with a model learned from links.

    rejoinder disentangle train --annotations DIR --out MODEL
    rejoinder disentangle apply LOG... --model MODEL --out DIR
    rejoinder disentangle score GOLD_DIR PREDICTED_DIR

After Kummerfeld et al. (2019), "A Large-Scale Corpus for Conversation Disentanglement".
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rejoinder.corpora.irc import read_log
from rejoinder.corpora.link_files import annotated_logs, name_of, write_annotations
from rejoinder.corpora.link_model import LinkModel, Settings
from rejoinder.corpora.link_training import Progress, train_on
from rejoinder.files import BadInputError


def _silent(_: str) -> None:
    pass


def train(
    annotations: Path, seed: int = 0, progress: Progress = _silent, settings: Settings | None = None
) -> LinkModel:
    """Train a model on a folder of logs with links, NAME.raw.txt and NAME.annotation.txt."""
    logs = list(annotated_logs(annotations))
    return train_on(logs, seed, settings or Settings(), progress)


def link_logs(logs: Sequence[Path], model: Path, out: Path) -> Iterator[Path]:
    """Write the links of each log to NAME.annotation.txt in a folder, and yield each file when it is written."""
    files = _outputs(logs, out)
    linker = LinkModel.load(model)
    for path, log in files.items():
        write_annotations(path, linker.links(read_log(log)))
        yield path


def _outputs(logs: Sequence[Path], out: Path) -> dict[Path, Path]:
    files: dict[Path, Path] = {}
    for log in logs:
        path = out / f"{name_of(log)}.annotation.txt"
        if path in files:
            raise BadInputError(log, f"another log is named {name_of(log)} too; their links would share one file")
        files[path] = log
    return files
