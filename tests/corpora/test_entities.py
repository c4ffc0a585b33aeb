import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.corpora.dictionary import build_dictionary
from rejoinder.corpora.entities import Parser
from rejoinder.corpora.film_memory import FilmMemory
from rejoinder.corpora.films import KnowledgeBase

TRICKY = [
    "M", "Up", "It", "Good Morning, Miss Dove", "Good Morning", "What's Up, Doc?", "(500) Days of Summer", "M*A*S*H",
    "8½", "Amélie", "ПИТ", "千と千尋の神隠し", "Will Arnett", "will arnett", "The Good, the Bad and the Ugly",
    "The Good", "99 and 44/100% Dead", "J.G. Ballard", "J. G. Ballard", "\xa0",
]  # fmt: skip


def found(text, names=TRICKY, rank=None):
    parsed = Parser(names, rank).parse([text])
    return [names[number] for number in parsed.entities if number >= 0]


def test_tricky_titles():
    assert found("who directed M?") == ["M"]
    assert found("Up, It, and M are movies I like") == ["Up", "It", "M"]
    assert found("Good Morning, Miss Dove and Good Morning, Up") == ["Good Morning, Miss Dove", "Good Morning", "Up"]
    assert found("when was What's Up, Doc?released?") == ["What's Up, Doc?"]
    assert found("I liked (500) Days of Summer, M*A*S*H, 8½ and Amélie.") == [*TRICKY[6:10]]
    assert found("Ame\u0301lie, ПИТ; 千と千尋の神隠し") == ["Amélie", "ПИТ", "千と千尋の神隠し"]
    assert found("the good , the bad and the UGLY") == ["The Good, the Bad and the Ugly"]
    assert found("Upper Mitten Itself") == []
    assert found("was 99 and 44/100% Dead good") == ["99 and 44/100% Dead"]
    assert found("") == []


def test_which_of_several_is_meant():
    assert found("will arnett, Will Arnett") == ["will arnett", "Will Arnett"]
    rank = np.array([7 if name == "will arnett" else 2 for name in TRICKY])
    assert found("WILL ARNETT", rank=rank) == ["Will Arnett"]
    assert found("WILL ARNETT", rank=-rank) == ["will arnett"]
    parsed = Parser(TRICKY).parse(["it is up to M"])
    assert parsed.exact[parsed.entities >= 0].tolist() == [False, False, True]


def cut(text):
    return re.findall(r"\w+|[^\w\s]", text.lower())


def naive(names, text):
    """Read from left to right, trying every name at every step, the longest first."""
    entries = sorted({tuple(cut(name)) for name in names} - {()}, key=len, reverse=True)
    words, place, symbols = cut(text), 0, []
    while place < len(words):
        hit = next((e for e in entries if tuple(words[place : place + len(e)]) == e), None)
        symbols.append(hit)
        place += len(hit) if hit else 1
    return symbols


WORDS = st.lists(st.sampled_from(["a", "B", "b", "the", ",", "c's", "É", "-", "?"]), max_size=6).map(" ".join)


@given(st.lists(WORDS, max_size=12), st.lists(WORDS, max_size=5))
def test_the_longest_entity_is_consumed(names, texts):
    parsed = Parser(names).parse(texts)
    for number, text in enumerate(texts):
        own = slice(parsed.starts[number], parsed.starts[number + 1])
        expected = naive(names, text)
        got = [None if e < 0 else tuple(cut(names[e])) for e in parsed.entities[own]]
        assert got == expected
        assert [s < 0 for s in parsed.symbols[own]] == [entry is None for entry in expected]


@given(st.lists(WORDS, min_size=1, max_size=12))
def test_every_name_is_found_as_itself(names):
    parser = Parser(names)
    parsed = parser.parse(names)
    for number, name in enumerate(names):
        own = slice(parsed.starts[number], parsed.starts[number + 1])
        if name.split():
            assert names[parsed.entities[own][0]].split() == name.split()
            assert parsed.symbols[own].tolist() == [parser.symbol_of[number]]
            assert parsed.exact[own].all()
        else:
            assert parser.symbol_of[number] == -1


def test_the_dictionary_has_entities_and_frequent_words():
    parser = Parser(["Alien", "Blade Runner"])
    texts = ["I like Alien"] * 5 + ["I like blade runner movies"] * 4
    dictionary = build_dictionary(parser, [texts[:3], texts[3:]])
    assert dictionary.words == ["i", "like"]
    assert len(dictionary) == 4
    parsed = dictionary.parse(["i LIKE Blade Runner movies", "", "movies"])
    assert parsed.symbols.tolist() == [2, 3, 1]
    assert parsed.starts.tolist() == [0, 3, 3, 3]
    assert build_dictionary(parser, [texts], fewest=4).words == ["i", "like", "movies"]


FILMS = [
    ("Alien", {"directed_by": ("Ridley Scott",), "has_genre": ("Horror",), "has_plot": ("A monster haunts a ship.",)}),
    ("Blade Runner", {"directed_by": ("Ridley Scott",), "has_genre": ("Sci-Fi",)}),
    ("Heat", {"directed_by": ("Michael Mann",), "has_genre": ("Horror",)}),
]


def test_memories_share_a_rare_symbol():
    kb = KnowledgeBase([], FILMS)
    dictionary = build_dictionary(Parser(kb.entities, kb.rank), [["monster ship a haunts"]], fewest=1)
    memory = FilmMemory(kb, dictionary, rare=2)

    def texts(*messages):
        found = memory.look_up(dictionary.parse(messages).rows())
        return [[memory.text(number) for number in found[row]] for row in range(len(messages))]

    assert texts("who made blade runner?", "nothing", "a monster") == [
        ["Blade Runner directed_by Ridley Scott", "Blade Runner has_genre Sci-Fi"],
        [],
        ["Alien has_plot A monster haunts a ship."],
    ]
    assert texts("Ridley Scott or horror") == [
        [
            "Alien directed_by Ridley Scott",
            "Alien has_genre Horror",
            "Blade Runner directed_by Ridley Scott",
            "Heat has_genre Horror",
        ]
    ]
    assert FilmMemory(kb, dictionary, rare=1).look_up(dictionary.parse(["Ridley Scott, Heat"]).rows())[0].size == 0
    row = memory.symbols[0].tolist()
    assert row[1] == len(dictionary)
    assert [row[0], row[2]] == dictionary.parse(["Alien Ridley Scott"]).symbols.tolist()


@given(st.lists(st.sampled_from(["Alien", "Heat", "Ridley Scott", "horror", "ship", "x"]), max_size=4))
def test_look_up_finds_what_a_search_of_all_memories_finds(words):
    kb = KnowledgeBase([], FILMS)
    dictionary = build_dictionary(Parser(kb.entities, kb.rank), [["ship"]], fewest=1)
    memory = FilmMemory(kb, dictionary)
    symbols = dictionary.parse([", ".join(words)]).rows()
    expected = [n for n in range(len(memory)) if set(memory.symbols[n]) & set(symbols[0])]
    assert memory.look_up(symbols)[0].tolist() == expected
