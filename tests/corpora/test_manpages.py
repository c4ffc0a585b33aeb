import os
import re
import shutil
import subprocess
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.corpora.manpages import alias_of, is_markup, to_text

PAGE = r""".\" a comment
.ie \n(.g .ds Aq \(aq
.el       .ds Aq '
.de Sp
.if t .sp .5v
..
.TH "FIND" 1 "" "" "User Commands"
.SH NAME
find \- search for files in a directory hierarchy \" why not
.SH "SEE ALSO"
.PP
The \fBname\fR of a
file: \(lqa\(rq or \*(Aqb\*(Aq, \s-1UNIX\s0.
.BR grep (1),
.IR locate "(1) and more"
.TP
\fB\-name\fR \fIpattern\fR
Base of file name
.IP \(bu 2
one
.if t \{\
not on a terminal
.\}
.TS
l l.
key	value
.TE
"""


def test_a_page_of_the_man_macros():
    assert to_text(PAGE).split("\n") == [
        "FIND(1)",
        "NAME",
        "find - search for files in a directory hierarchy",
        "SEE ALSO",
        "The name of a file: \"a\" or 'b', UNIX. grep(1), locate(1) and more",
        "-name pattern Base of file name",
        "* one",
        "key value",
    ]


def test_a_page_of_the_mdoc_macros():
    head = ".Dd May 1\n.Dt CAT 1\n.Sh NAME\n.Nm cat\n.Nd join files\n.Sh SYNOPSIS\n"
    page = head + ".Nm\n.Op Fl bn\n.Op Ar file ...\n.Xr ls 1\n"
    assert to_text(page).split("\n") == ["NAME", "cat join files", "SYNOPSIS", "cat [-bn] [file ...] ls(1)"]


def test_aliases_and_markup_are_told_apart():
    assert alias_of('.\\" c\n.so man1/gzip.1\n') == "man1/gzip.1"
    assert alias_of(PAGE) is None
    assert is_markup(PAGE)
    assert not is_markup("LS(1)\n\nNAME\n  ls - list .TH\n")


@given(st.text(alphabet=".'\\\"{}()[]*fnsBISHTED \n\tab1-"))
def test_any_page_is_read(text):
    assert "\n\n" not in to_text(text)


@pytest.mark.skipif(shutil.which("man") is None, reason="the command man is not installed")
def test_words_are_those_that_the_formatter_prints(tmp_path):
    path = tmp_path / "find.1"
    path.write_text(PAGE)
    environment = os.environ | {"MANWIDTH": "1000", "MANPAGER": "cat", "GROFF_NO_SGR": "1", "LC_ALL": "C.UTF-8"}
    command = ["man", "--no-hyphenation", "--local-file", str(path)]
    printed = subprocess.run(command, capture_output=True, env=environment, check=True).stdout.decode()
    body = re.sub(r".\x08", "", printed).split("\n")[1:-2]  # without the lines at the top and the bottom
    words = re.compile(r"\w+")
    ours = Counter(words.findall(to_text(PAGE).partition("\n")[2]))
    assert ours == Counter(word for line in body for word in words.findall(line))
