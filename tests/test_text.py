import unicodedata

import polars as pl

from rejoinder.text import TOKEN, counted, is_chinese, stretches, tokens, words


def test_words_characters_and_marks_are_tokens():
    assert tokens("It's 4G, 坏了!") == ["it", "'", "s", "4g", ",", "坏", "了", "!"]
    assert tokens("") == []


def test_what_stands_with_a_letter_is_a_part_of_its_word():
    for text in ("हिन्दी भाषा", "สวัสดีครับ", "שָׁלוֹם", "مُحَمَّد", "café crème"):
        for form in ("NFC", "NFD"):
            typed = unicodedata.normalize(form, text)
            assert words(typed) == tokens(typed) == unicodedata.normalize("NFC", text).split()
            assert pl.Series([text]).str.extract_all(TOKEN)[0].to_list() == text.split()


def test_joiners_and_signs_beyond_the_basic_plane_are_parts_of_their_word():
    for text in ("می‌خواهم", "ශ්‍රී", "𑄌𑄋𑄴𑄟𑄳𑄦"):
        assert tokens(text) == stretches(text) == [text]


def test_stretches_of_chinese_are_whole():
    assert stretches("It's 4G, 坏了!") == ["it", "'", "s", "4g", ",", "坏了", "!"]


def test_a_language_is_told_by_its_letters():
    assert is_chinese(["手机坏了", "ok 4G"])
    assert not is_chinese(["my phone is broken 坏", "123 !!"])
    assert not is_chinese(["123", ""])
    assert not is_chinese([])


def test_one_thing_and_several():
    assert [counted(number, "dialogue") for number in (0, 1, 1_200)] == ["0 dialogues", "1 dialogue", "1,200 dialogues"]
