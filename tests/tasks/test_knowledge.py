import pytest

from rejoinder.tasks.knowledge import knowledge_files, read_pages

PAGE = ".TH HELLO 1\n.SH NAME\nhello \\- greets the \\fBworld\\fR\n.SH OPTIONS\n.TP\n.B \\-v\nsays more\n"


def read(source):
    return dict(read_pages(knowledge_files(str(source))).iter_rows())


def test_texts_and_markdown_are_read_with_their_names(save, tmp_path):
    save("ls.1.txt", "LS(1)\nlist files\n")
    save("guide.md", "# Guide\nread me")
    save("picture.png", b"\x89PNG")
    save("old.txt.gz", "N\x08NA\x08AME")
    assert read(tmp_path) == {"ls.1": "LS(1)\nlist files\n", "guide": "# Guide\nread me", "old": "NAME"}


def test_manual_pages_in_markup_become_text(save, tmp_path):
    save("hello.1.gz", PAGE)
    assert read(tmp_path) == {"hello.1": "HELLO(1)\nNAME\nhello - greets the world\nOPTIONS\n-v says more"}


def test_another_name_of_a_page_has_its_text(tmp_path):
    folder = tmp_path / "man1"
    folder.mkdir()
    (folder / "hello.1").write_text(PAGE)
    (folder / "hi.1").write_text(".so man1/hello.1\n")
    (folder / "ho.1").write_text(".so man1/ho.1\n")
    (folder / "lost.1").write_text(".so man1/nothing.1\n")
    pages = read(tmp_path)
    assert pages["hi.1"] == pages["hello.1"] != ""
    assert pages["ho.1"] == pages["lost.1"] == ""


def test_a_folder_without_text_says_so(tmp_path, complaint):
    assert "holds no text; expected manual pages" in complaint(knowledge_files, str(tmp_path))


def test_a_folder_named_man_is_that_folder(save, tmp_path, monkeypatch):
    (tmp_path / "man").mkdir()
    save("man/ls.1.txt", "list files")
    monkeypatch.chdir(tmp_path)
    assert read("man") == {"ls.1": "list files"}


def test_a_machine_without_a_manual_says_so(tmp_path, monkeypatch, complaint):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert complaint(knowledge_files, "man") == "man: this machine has no manual; give a folder of pages instead"


@pytest.mark.parametrize("content", [b"", b"\xff\xfe.TH", b".TH", b".de x", b".if n \\{", b".TS\nl l.", b"\\", b"\\f"])
def test_odd_pages_are_read_as_far_as_they_go(save, tmp_path, content):
    save("odd.1", content)
    assert list(read(tmp_path)) == ["odd.1"]
