r"""Manual pages out of their source, without the formatter: plain words for search, at a hundredth of its time.

    .SH NAME            a heading
    .B \-x              a request with text, in bold
    Text with \fIescapes\fR.

Both macro packages are read, man and mdoc; layout is left out, and so is what a page defines for itself.
"""

import re
from collections.abc import Iterator

_REQUEST = re.compile(r"[.'][ \t]*([^\s\\]*)[ \t]*(.*)")
_COMMENT = re.compile(r"(?<!\\)\\[\"#].*")
_DEFINITIONS = {"de", "de1", "dei", "am", "am1", "ig"}
_HEADINGS = {"SH", "SS", "Sh", "Ss"}
_SPACED = {"B", "I", "R", "SM", "SB", "SY", "UR", "MT", "URL", "MTO", "CW", "Nd", "D1", "Dl"}
_JOINED = {"BR", "RB", "IR", "RI", "IB", "BI"}
_is_break = re.compile("PP|P|LP|TP|TQ|HP|br|sp|RS|RE|Pp|Bd|Ed|Bl|El|nf|fi|EX|EE").fullmatch
_is_mdoc = re.compile(
    "Nm|Op|Fl|Ar|Pa|Xr|Dq|Sq|Ql|Cm|Ic|Ev|Va|Em|Sy|Li|It|Ns|Oo|Oc|Pq|Aq|Bq|Brq|Qq|No|Ta|Tn|An|Lk|Mt|Dv|Er|Fn|Fa|Ft|In|"
    "Po|Pc|Do|Dc|So|Sc|Bo|Bc|Qo|Qc|Ao|Ac|Cd|Vt|St|Ux|Bx|Fx|Nx|Ox"
).fullmatch
_ESCAPE = re.compile(
    r"\\(?:\*(?:\((?P<s2>..)|\[(?P<s>[^\]]*)\]|(?P<s1>.))"
    r"|\((?P<g2>..)|\[(?P<g>[^\]]*)\]|N'(?P<n>\d+)'"
    r"|[fFmMn](?:[+-]?\(..|\[[^\]]*\]|[+-]?.)|s(?:[+-]?\(\d\d|\[[^\]]*\]|[+-]?'[^']*'|[+-]?\d)"
    r"|[hvwlLoXZDbRAHSYx]'[^']*'|[kgV](?:\(..|\[[^\]]*\]|.)|(?P<c>.))",
    re.DOTALL,
)
_CHARACTERS = {"-": "-", "e": "\\", "\\": "\\", " ": " ", "~": " ", "0": " ", "'": "'", "`": "`", ".": ".", "t": "\t"}
_QUOTES = {"aq": "'", "cq": "'", "oq": "'", "aa": "'", "fm": "'", "ga": "`", "dq": '"', "lq": '"', "rq": '"'}
_SIGNS = {
    "em": "-",
    "en": "-",
    "hy": "-",
    "mi": "-",
    "pl": "+",
    "mu": "x",
    "co": "(c)",
    "de": "°",
    "bu": "*",
    "sl": "/",
}
_KEYS = {"rs": "\\", "sl": "/", "ti": "~", "ha": "^", "at": "@", "sh": "#", "Do": "$", "ba": "|", "or": "|", "bv": "|"}
_BRACKETS = {"lB": "[", "rB": "]", "lC": "{", "rC": "}", "la": "<", "ra": ">"}
_GLYPHS = _QUOTES | _SIGNS | _KEYS | _BRACKETS | {sign: sign for sign in ("+-", "->", "<-", "<=", ">=", "!=")}
_STRINGS = _QUOTES | {"Aq": "'", 'L"': '"', 'R"': '"', "C`": '"', "C'": '"', "``": '"', "''": '"', "--": "-"}
_ARGUMENT = re.compile(r'"((?:[^"]|"")*)"?|((?:\\.|[^\s"])\S*)')


def is_markup(text: str) -> bool:
    """Whether a page is in the formatter's language and not yet text."""
    return re.search(r"^[.'](TH|Dd|so|SH)\b", text, re.MULTILINE) is not None


def alias_of(text: str) -> str | None:
    """Return the page that this one is another name for (`.so man1/other.1`)."""
    found = re.match(r"(?:[.']\\\".*\n|\s)*[.']so +(\S+)", text)
    return found[1] if found else None


def to_text(markup: str) -> str:
    """Return the words of a page, a line for each paragraph."""
    paragraphs: list[list[str]] = [[]]
    for part in _Page().read(markup):
        if part is None:
            paragraphs.append([])
        elif part.strip():
            paragraphs[-1].append(part)
    return "\n".join(" ".join(" ".join(words).split()) for words in paragraphs if words)


class _Page:
    """Reads a page line by line, remembering its strings, its name, and what it has been told to skip."""

    def __init__(self) -> None:
        self.strings = dict(_STRINGS)
        self.name = ""
        self.taken = True

    def read(self, markup: str) -> Iterator[str | None]:
        """Yield pieces of text, and None where a paragraph ends."""
        lines = iter(re.sub(r"(?<!\\)\\\n", "", markup).split("\n"))
        for line in lines:
            yield from self._line(_COMMENT.sub("", line), lines)

    def _line(self, line: str, lines: Iterator[str]) -> Iterator[str | None]:
        found = _REQUEST.fullmatch(line)
        if found is None:
            yield self._plain(line) if line.strip() else None
            return
        name, rest = found.groups()
        if name in _DEFINITIONS:
            _skip_to(lines, *rest.split()[1:2])
        elif name in ("if", "ie", "el", "while"):
            yield from self._choice(name, rest, lines)
        elif name == "TS":
            yield None
            yield from self._table(lines)
        elif name in ("ds", "ds1"):
            key, _, value = rest.partition(" ")
            self.strings[key] = value.removeprefix('"')
        else:
            yield from self._request(name, rest)

    def _request(self, name: str, rest: str) -> Iterator[str | None]:
        if name in _HEADINGS:
            yield from (None, self._plain(" ".join(_words(rest))), None)
        elif _is_break(name):
            yield None
        elif name in _SPACED:
            yield self._plain(" ".join(_words(rest)))
        elif name in _JOINED:
            yield self._plain("".join(_words(rest)))
        elif name == "OP":
            yield self._plain(f"[{' '.join(_words(rest))}]")
        elif name == "IP":
            yield from (None, self._plain("".join(_words(rest)[:1])))
        elif name == "TH":
            yield from (self._plain("{}({})".format(*[*_words(rest), "", ""][:2])), None)
        elif _is_mdoc(name):
            if name == "It":
                yield None
            yield self._plain(self._mdoc([name, *_words(rest)]))

    def _choice(self, name: str, rest: str, lines: Iterator[str]) -> Iterator[str | None]:
        r"""Follow `.if` and `.ie` for a terminal, `.el` otherwise; a block `\{ ... \}` is passed over as a whole."""
        taken = not self.taken
        if name != "el":
            condition, _, rest = rest.partition(" ")
            self.taken = taken = condition == "n" or condition.startswith("\\n(.g")
        if taken:
            yield from self._line(rest.lstrip().removeprefix("\\{").removesuffix("\\}").lstrip(), lines)
            return
        open_ = rest.count("\\{") - rest.count("\\}")
        while open_ > 0 and (line := next(lines, None)) is not None:
            open_ += line.count("\\{") - line.count("\\}")

    def _table(self, lines: Iterator[str]) -> Iterator[str | None]:
        in_format = True
        for line in lines:
            if line.startswith((".TE", "'TE")):
                break
            if in_format or line.startswith(".T&"):
                in_format = not line.rstrip().endswith(".")
            elif not line.startswith((".", "_", "=")) and line not in ("T{", "T}"):
                yield self._plain(line.replace("T{", " ").replace("T}", " "))
                yield None

    def _mdoc(self, words: list[str]) -> str:
        if words[0] == "Nm":
            self.name = self.name or " ".join(words[1:2])
            words = words if len(words) > 1 else ["Nm", self.name]
        text = " ".join("-" if word == "Fl" else word for word in words if word == "Fl" or not _is_mdoc(word))
        text = re.sub(r"(?<!\S)- (?=\S)", "-", text)
        if words[0] == "Xr":
            text = re.sub(r"^(\S+) (\S+)", r"\1(\2)", text)
        return f"[{text}]" if words[0] == "Op" else text

    def _plain(self, text: str) -> str:
        return _ESCAPE.sub(self._character, text) if "\\" in text else text

    def _character(self, found: re.Match[str]) -> str:
        kind, value = found.lastgroup, found[found.lastgroup] if found.lastgroup else ""
        if kind in ("s", "s1", "s2"):
            known = self.strings.get(value, "")
            return known if "\\*" in known else self._plain(known)
        if kind in ("g", "g2"):
            code = re.fullmatch(r"u([0-9A-F]{4,6})", value)
            return chr(int(code[1], 16)) if code and int(code[1], 16) < 0x110000 else _GLYPHS.get(value, "")
        if kind == "n":
            return chr(int(value)) if int(value) < 0x110000 else ""
        return _CHARACTERS.get(value, "") if kind == "c" else ""


def _skip_to(lines: Iterator[str], end: str = ".") -> None:
    for line in lines:
        if line.rstrip() in (f".{end}", f"'{end}"):
            return


def _words(rest: str) -> list[str]:
    """Split a request's arguments, where `"` holds words together."""
    return [quoted.replace('""', '"') or bare for quoted, bare in _ARGUMENT.findall(rest)]
