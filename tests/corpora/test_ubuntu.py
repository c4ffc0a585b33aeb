import pytest

from rejoinder.corpora.irc import Post
from rejoinder.corpora.ubuntu import (
    ASKER,
    HELPER,
    Funnel,
    People,
    addressee,
    cuts,
    every_reply,
    is_bot,
    is_for_bot,
    nameless,
    people_of,
    support_dialogues,
    without_names,
)

NICKS = {"ann", "bob", "carl", "ubottu", "x-ray"}
PEOPLE = People(frozenset(NICKS))


def conversation(*said: str) -> list[Post]:
    """`nick> text` for each message."""
    posts = []
    for line, message in enumerate(said):
        nick, text = message.split("> ", 1)
        posts.append(Post(line, line, nick, nick, text, "message"))
    return posts


def keep(*said: str) -> tuple[list, Funnel]:
    funnel = Funnel()
    return list(support_dialogues([conversation(*said)], PEOPLE, "log", "2013-01-01", funnel)), funnel


GOOD = ("ann> sound is gone", "bob> ann: which card?", "ann> bob: intel", "bob> try alsamixer", "ann> thanks")


def test_a_good_conversation_passes_and_loses_its_names():
    (support,), funnel = keep(*GOOD)
    assert [turn.text for turn in support.dialogue.turns] == [
        "sound is gone", "which card?", "intel", "try alsamixer", "thanks",
    ]  # fmt: skip
    assert [turn.speaker for turn in support.dialogue.turns] == [ASKER, HELPER, ASKER, HELPER, ASKER]
    assert support.day == "2013-01-01"
    assert (funnel.conversations, funnel.kept) == (1, 1)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (("ann> bob: sound is gone", *GOOD[1:]), "directed"),
        (("ann> bob sound is gone", *GOOD[1:]), "directed"),
        (("ann> bob", *GOOD), "directed"),
        ((*GOOD, "carl> me too"), "participants"),
        (("ann> hello?", "ann> anybody?", "ann> nobody"), "participants"),
        (("ann> a", "ann> b", "ann> c", "ann> d", "bob> e", "ann> f"), "monologue"),
        (("ann> a", "ann> b", "bob> c", "bob> d"), "short"),
    ],
)
def test_each_filter_removes_what_the_paper_says(said, reason):
    kept, funnel = keep(*said)
    assert kept == []
    assert funnel.removed == {reason: 1}


def test_eighty_percent_is_not_more_than_eighty_percent():
    said = ("ann> a", "bob> b", "ann> c", "ann> d", "ann> e")
    assert len(keep(*said)[0]) == 1


def test_the_bot_does_not_count_as_a_participant():
    (support,), _ = keep(*GOOD[:2], "ubottu> sound help is at the wiki", *GOOD[2:])
    assert len(support.dialogue.turns) == 5
    assert all(is_bot(nick) for nick in ("ubottu", "ubotu", "FloodBot1", "FloodBotK2", "lubotu3"))
    assert not any(is_bot(nick) for nick in ("bob", "robot", "ubuntu"))


@pytest.mark.parametrize(
    "said", ["bob> !sound", "bob> ann: !sound", "bob> !info alsa | ann", "bob> ubottu: tell ann about sound"]
)
def test_commands_to_the_bot_are_no_part_of_the_dialogue(said):
    (support,), _ = keep(*GOOD[:3], said, "ubottu> sound help is at the wiki", *GOOD[3:])
    assert support == keep(*GOOD)[0][0]


@pytest.mark.parametrize("text", ["that works!", "if a != b", "!!", "wow ! great", "ann: no !", "! is a sign"])
def test_an_exclamation_mark_is_no_command(text):
    assert not is_for_bot(text)


def test_a_person_keeps_the_identity_through_changes_of_nick():
    posts = conversation(*GOOD)
    renamed = [
        Post(p.line, p.minute, "ann_away" if p.line > 1 and p.nick == "ann" else p.nick, p.person, p.text, p.kind)
        for p in posts
    ]
    (support,) = support_dialogues([renamed], people_of(renamed), "log", "day", Funnel())
    assert {turn.speaker for turn in support.dialogue.turns} == {ASKER, HELPER}


def test_consecutive_messages_are_one_turn_and_counted_apart():
    (support,), _ = keep("ann> a", "ann> b", "bob> c", "ann> d")
    assert support.dialogue.turns[0].text == "a b"
    assert support.messages == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("text", "nick"),
    [
        ("bob: hi", "bob"),
        ("Bob, hi", "bob"),
        ("@x-ray: hi", "x-ray"),
        ("well, yes", None),
        ("bob hi", None),
        ("hi bob: x", None),
    ],
)
def test_addressees(text, nick):
    assert addressee(text, NICKS) == nick


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("bob: it works", "it works"),
        ("Bob_42, ask Bob_42 again", "ask again"),
        ("bob: Bob_42: both", "both"),
        ("bob it works", "it works"),
        ("bob -R x", "-R x"),
        ("bob - thanks", "thanks"),
        ("bob... what?", "what?"),
        ("hi, bob!", "hi!"),
        ("thanks a lot BOB.", "thanks a lot."),
        ("well, bob, is that bob's idea", "well, is that idea"),
        ("@bob /home/bob, bob@host, http://bob.org, bob.txt", "/home/bob, bob@host, http://bob.org, bob.txt"),
        ("notBob_42 and bob|work stay", "notBob_42 and bob|work stay"),
        ("stuff: some stuff", "some stuff"),
        ("stuff breaks", "stuff breaks"),
        ("bob", ""),
    ],
)  # fmt: skip
def test_names_leave_the_messages(text, left):
    assert without_names(text, {"bob", "bob_42", "stuff"}, {"stuff"}) == left


def test_a_nick_that_people_use_within_sentences_is_a_word():
    talk = conversation(
        "stuff> hi", "bob> hi", *(f"user{n}> where do I put stuff?" for n in range(3)), "ann> thanks bob"
    )
    assert people_of(talk).words == {"stuff"}
    assert people_of([*talk, *conversation("carl> stuff: look")]).words == frozenset()


def test_names_of_who_takes_part_or_is_addressed_leave_also_what_is_no_dialogue():
    talk = conversation("ann> carl: thanks carl", "ann> bob", "bob> ask dora", "ubottu> ann: see the wiki")
    assert [text for _, text in nameless(talk, PEOPLE)] == ["thanks", "ask dora"]


def test_cuts_are_before_answers_to_the_asker():
    (support,), _ = keep(*GOOD)
    assert cuts(support.dialogue) == [1, 3]


def test_every_turn_can_be_a_reply_whoever_speaks():
    talk = conversation(
        "ann> sound?", "ubottu> read this", "bob> ann: which card", "carl> ann: hello", "ann> bob: intel"
    )
    found = [([(turn.speaker, turn.text) for turn in before], reply) for before, reply in every_reply(talk, PEOPLE)]
    assert found == [
        ([(ASKER, "sound?")], "which card"),
        ([(ASKER, "sound? which card")], "hello"),
        ([(HELPER, "sound?"), (ASKER, "which card hello")], "intel"),
    ]
