import gzip
import json
from datetime import datetime

import pytest

from rejoinder.corpora.helpdesk import Columns, Roles, read_dialogues
from rejoinder.dialogue import Dialogue, Turn

CSV = """\
conversation,speaker,text,time
7,Visitor,"My parcel, it ""never"" came.
Really.",2024-05-01 09:12
8,agent,Hello?,
7,agent,Sorry!,2024-05-01 09:14
7,Visitor,,2024-05-01 09:13
7,agent,Let me look.,2024-05-01 09:15
"""


def test_posts_become_dialogues(save):
    parcel = 'My parcel, it "never" came.\nReally.'
    expected = [
        Dialogue(
            "7",
            (Turn("customer", (parcel, "")), Turn("helpdesk", ("Sorry!", "Let me look."))),
            datetime(2024, 5, 1, 9, 12),
        ),
        Dialogue("8", (Turn("helpdesk", ("Hello?",)),)),
    ]
    assert read_dialogues(save("chats.csv", CSV)) == expected
    assert read_dialogues(save("chats.csv.gz", CSV)) == expected
    assert read_dialogues(save("bom.csv", b"\xef\xbb\xbf" + CSV.encode())) == expected


@pytest.mark.parametrize("separator", ["\t", ";"])
def test_other_separators_and_names(save, separator):
    lines = ["id", "who", "what"], ["a", "Jo", "一"], ["a", "Ann", "二"], ["a", "Bob", "三"]
    path = save("chats", "\r\n".join(separator.join(line) for line in lines))
    (dialogue,) = read_dialogues(path, Columns("id", "who", "what"), Roles(customers=frozenset({"jo"})))
    assert dialogue.turns == (Turn("customer", ("一",)), Turn("helpdesk", ("二", "三")))
    (dialogue,) = read_dialogues(path, Columns("id", "who", "what"), Roles(helpdesks=frozenset({"Ann"})))
    assert [turn.speaker for turn in dialogue.turns] == ["customer", "helpdesk", "customer"]


def test_json_lines(save):
    records = [
        {"conversation": 5, "speaker": "user", "text": "hi", "time": 1714554720, "extra": {"any": [1]}},
        {"conversation": 5, "speaker": "bot", "text": None, "time": 1714554730000, "extra": 7},
        {"conversation": 5, "speaker": "user", "text": "x@y.example", "time": "2024-05-01T11:12:30+02:00"},
    ]
    path = save("chats.jsonl", "\n".join(json.dumps(record) for record in records))
    (dialogue,) = read_dialogues(path, change=str.upper)
    assert (dialogue.id, dialogue.time) == ("5", datetime(2024, 5, 1, 9, 12))
    assert dialogue.turns == (Turn("customer", ("HI",)), Turn("helpdesk", ("",)), Turn("customer", ("X@Y.EXAMPLE",)))


def test_posts_of_one_time_keep_their_order(save):
    rows = "".join(f"1,{'user' if n % 2 else 'agent'},{n},2024-05-01\n" for n in range(500))
    (dialogue,) = read_dialogues(save("long.csv", "conversation,speaker,text,time\n" + rows))
    assert [turn.text for turn in dialogue.turns] == [str(n) for n in range(500)]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("conversation,speaker,text\n1,manager,hi", "row 1: speaker: 'manager' is neither known as a customer nor as "
         "the helpdesk; say which by --customer or --helpdesk"),
        ("conversation,speaker,text\n1,user,hi\n,user,ho", "row 2: conversation: is empty; expected the "
         "conversation's id"),
        ("conversation,speaker,text\n1,user,hi,ho", "row 1: 4 fields; the header has 3"),
        ("conversation,speaker,words\n1,user,hi", "header: text: no such column; there are conversation, "
         "speaker, words; name yours by --conversation, --speaker and --text"),
        ("conversation,speaker,text\n", "holds no post"),
        ("1,user,hi\n", "header: conversation: no such column; there are 1, user, hi; name yours by --conversation, "
         "--speaker and --text"),
        ("conversation,speaker,text,text\n1,user,hi,ho", "header: text: is the name of several columns"),
        ("conversation,speaker,text,time\n1,user,hi,yesterday", "row 1: time: 'yesterday'; expected a time such as "
         "2024-05-01 09:12 (ISO 8601)"),
        ('conversation,speaker,text\n1,user,"hi', "not CSV (unexpected end of data)"),
        (b"conversation,speaker,text\n1,user,\xff", "not UTF-8 (invalid start byte)"),
        ('{"conversation": 1, "speaker": "user", "text": ["a"]}', "record 1: text: no such column; there are "
         "conversation, speaker; name yours by --conversation, --speaker and --text"),
    ],
)  # fmt: skip
def test_mistakes(save, complaint, content, problem):
    assert complaint(read_dialogues, save("f", content)) == f"f: {problem}"


def test_a_damaged_file(save, complaint):
    path = save("f.gz", gzip.compress(CSV.encode())[:-9])
    assert complaint(read_dialogues, path).startswith("f.gz: ")


def test_a_side_that_nobody_is_on_is_named(save, complaint, cli, tmp_path):
    path = save("chats.csv", CSV)
    nobody = Roles(customers=frozenset({"nobody", "none"}))
    expected = "chats.csv: speaker: no post by nobody or none; there are Visitor, agent"
    assert complaint(read_dialogues, path, roles=nobody) == expected
    assert complaint(read_dialogues, path, roles=Roles(helpdesks=nobody.customers)) == expected
    read_dialogues(path, roles=Roles(customers=frozenset({"nobody", "visitor"})))
    code, _, err = cli("import", "helpdesk", path, "--customer", "nobody", "--out", tmp_path / "out")
    assert (code, (tmp_path / "out").exists()) == (2, False), err


def test_a_post_may_be_a_whole_log_and_names_may_have_spaces_around_them(save):
    log = "x" * 300_000
    (dialogue,) = read_dialogues(save("chats.csv", f"conversation, speaker ,text\n1,user,{log}\n"))
    assert dialogue.turns[0].posts == (log,)
