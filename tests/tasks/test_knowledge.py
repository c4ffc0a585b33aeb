import shutil

import pytest

from rejoinder.tasks.knowledge import read_knowledge

PAGE = ".TH HELLO 1\n.SH NAME\nhello \\- greets the \\fBworld\\fR\n.SH OPTIONS\n.TP\n.B \\-v\nsays more\n"


def test_texts_and_markdown_are_read_with_their_names(save, tmp_path):
    save("ls.1.txt", "LS(1)\nlist files\n")
    save("guide.md", "# Guide\nread me")
    save("picture.png", b"\x89PNG")
    save("old.txt.gz", "N\x08NA\x08AME")
    pages = dict(read_knowledge(tmp_path).iter_rows())
    assert pages == {"ls.1": "LS(1)\nlist files", "guide": "# Guide\nread me", "old": "NAME"}


@pytest.mark.skipif(shutil.which("man") is None, reason="the command man is not installed")
def test_manual_pages_in_markup_are_rendered(save, tmp_path):
    save("hello.1.gz", PAGE)
    pages = dict(read_knowledge(tmp_path).iter_rows())
    assert "hello - greets the world" in " ".join(pages["hello.1"].replace("‐", "-").replace("−", "-").split())
    assert ".SH" not in pages["hello.1"]


def test_a_folder_without_text_says_so(tmp_path, complaint):
    assert "holds no text; expected manual pages" in complaint(read_knowledge, tmp_path)
