import json

from rejoinder.corpora.discussions import read_discussions


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def test_threads_become_chains(save):
    def comment(id_, parent, body):
        return {"id": id_, "parent_id": parent, "body": body, "author": "x", "link_id": "t3_z"}

    path = save(
        "c.jsonl",
        lines(
            comment("a", "t3_z", "first\nline"), comment("b", "t1_a", "second"), comment("c", "t1_a", "other"),
            comment("d", "t1_b", "third"), comment("e", "t1_c", "[deleted]"), comment("f", "t1_e", "orphan"),
            comment("g", None, "alone"), comment("h", "t1_f", "answer"),
        ),
    )  # fmt: skip
    assert list(read_discussions(path)) == [
        ("first line", "second", "third"),
        ("first line", "other"),
        ("orphan", "answer"),
    ]


def test_every_comment_replies_once(save):
    path = save(
        "c.jsonl", lines(*({"id": str(n), "parent_id": str(n // 2) if n else None, "body": f"b{n}"} for n in range(40)))
    )
    replies = [text for dialogue in read_discussions(path) for text in dialogue[1:]]
    assert len(replies) == len(set(replies))
    firsts = [dialogue[0] for dialogue in read_discussions(path)]
    assert set(replies) | set(firsts) == {f"b{n}" for n in range(40)}


def test_redial(save):
    said = [(1, "Seen @7?"), (1, "or @8"), (2, "No,  @9 "), (2, " "), (1, "bye")]
    record = {
        "movieMentions": {"7": "Heat  (1995)", "8": None},
        "messages": [{"senderWorkerId": who, "text": text, "messageId": 1} for who, text in said],
        "conversationId": "1",
    }
    silent = {"movieMentions": [], "messages": [{"senderWorkerId": 1, "text": "hello"}]}
    assert list(read_discussions(save("r.jsonl", lines(record, silent)))) == [("Seen Heat? or @8", "No, @9", "bye")]


def test_mistakes(save, complaint):
    def read(path):
        return list(read_discussions(path))

    twice = save("c", lines({"id": "a", "body": "x"}, {"id": "a", "body": "y"}))
    assert complaint(read, twice) == "c: record 2: id: 'a' is given twice"
    assert complaint(read, save("c", lines({"id": "a"}))) == "c: record 1: object missing required field `body`"
