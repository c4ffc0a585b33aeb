"""`rejoinder build chats`, and how a team says what its columns and speakers are called, for other commands too."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.app import Seed
from rejoinder.cli.build import Candidates, Out, build, tell

if TYPE_CHECKING:
    from rejoinder.corpora.helpdesk import Columns, Roles

Conversation = Annotated[str, typer.Option("--conversation", help="Column with the conversation's id.")]
Speaker = Annotated[str, typer.Option("--speaker", help="Column with the speaker.")]
Text = Annotated[str, typer.Option("--text", help="Column with the text.")]
Time = Annotated[
    str, typer.Option("--time", help="Column with the time (ISO 8601, or seconds since 1970); may be missing.")
]
Customers = Annotated[
    list[str] | None,
    typer.Option(
        "--customer",
        metavar="NAME",
        help="A speaker who is a customer (repeatable). Without --helpdesk, all others are not.",
    ),
]
Helpdesks = Annotated[
    list[str] | None,
    typer.Option("--helpdesk", metavar="NAME", help="A speaker who is the helpdesk (repeatable); likewise."),
]
Mask = Annotated[
    bool, typer.Option("--mask", help="Replace what looks like personal data: addresses, phone and card numbers, ...")
]


def columns_of(conversation: str, speaker: str, text: str, time: str) -> "Columns":
    """Return what a person's columns are called."""
    from rejoinder.corpora.helpdesk import Columns

    return Columns(conversation, speaker, text, time)


def roles_of(customers: list[str] | None, helpdesks: list[str] | None) -> "Roles":
    """Return who is who."""
    from rejoinder.corpora.helpdesk import Roles

    return Roles(frozenset(customers or ()), frozenset(helpdesks or ()))


@build.command(epilog="Example: rejoinder build chats chats.csv --helpdesk agent --mask --out chats")
def chats(
    chats: Annotated[
        Path,
        typer.Argument(
            metavar="CHATS", help="Posts (CSV with a header, or JSON lines), a judgement task folder, or DialEval data."
        ),
    ],
    out: Out,
    candidates: Candidates = 100,
    conversation: Conversation = "conversation",
    speaker: Speaker = "speaker",
    text: Text = "text",
    time: Time = "time",
    customer: Customers = None,
    helpdesk: Helpdesks = None,
    mask: Mask = False,
    seed: Seed = 0,
) -> None:
    """Build DSTC7's subtasks from a support team's own dialogues.

    Subtasks 1, 2 and 4: what the helpdesk replied, among other replies of its own.

    The oldest 80% of the dialogues train, then 10% each for dev and test.
    """
    from rejoinder.files import fingerprint
    from rejoinder.folders import staged_folder
    from rejoinder.report.terminal import progress
    from rejoinder.tasks.chats import ChatsPlan, write_chats
    from rejoinder.tasks.helpdesk import read_chats

    with progress(f"reading {chats.name}", None):
        columns, roles = columns_of(conversation, speaker, text, time), roles_of(customer, helpdesk)
        dialogues = read_chats(chats, columns, roles, mask)
    plan = ChatsPlan(seed=seed, candidates=candidates, sources={chats.name: fingerprint(chats)})
    with staged_folder(out, mark="description.json", kept="") as stage, progress("building subtasks", 9) as advance:
        description = write_chats(stage, dialogues, plan, advance)
    tell(description, out)
