"""Records in files: lists or lines of JSON objects, whatever their size, and files that are one JSON or YAML value."""

import gzip
import json
import mmap
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

import msgspec

from rejoinder.files import MARK, BadInputError, open_binary, read_start, write_atomically

Record = TypeVar("Record")


def read_json(path: Path, kind: type[Record]) -> Record:
    """Read a file that is one JSON value."""
    return _decoded(path, kind, "JSON", msgspec.json.decode)


def read_yaml(path: Path, kind: type[Record]) -> Record:
    """Read a file that is one YAML document."""
    return _decoded(path, kind, "YAML", _decode_yaml)


def _decode_yaml(content: bytes, type: type[Record]) -> Record:  # noqa: A002  # as msgspec calls it
    """Decode YAML in which no key stands twice; of such, all but the last would be lost."""
    import yaml  # type: ignore[import-untyped]

    found = msgspec.yaml.decode(content, type=type)
    nodes, seen = [yaml.compose(content, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))], set()
    while nodes:
        node = nodes.pop()
        if id(node) in seen:  # an alias
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            nodes += node.value
        elif isinstance(node, yaml.MappingNode):
            keys = [key.value for key, _ in node.value]
            if twice := [key for key in keys if keys.count(key) > 1]:
                raise msgspec.DecodeError(f"{twice[0]!r} stands twice in one place, line {node.start_mark.line + 1}")
            nodes += [value for _, value in node.value]
    return found


def _decoded(path: Path, kind: type[Record], language: str, decode: Callable[..., Record]) -> Record:
    with open_binary(path) as file:
        content = file.read().removeprefix(MARK)
    if not content.strip():
        raise BadInputError(path, "is empty")
    try:
        return decode(content, type=kind)
    except msgspec.ValidationError as error:
        raise invalid(path, None, error) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInputError(path, f"malformed {language} ({error})") from None


def read_json_records(path: Path, kind: type[Record]) -> Iterator[tuple[int, Record]]:
    """Yield (record number from 1, record) of a JSON list of objects, or of JSON lines, holding few at a time."""
    decoder = msgspec.json.Decoder(kind)
    for number, raw in enumerate(_raw_records(path), 1):
        try:
            yield number, decoder.decode(raw)
        except msgspec.ValidationError as error:
            raise invalid(path, f"record {number}", error) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _malformed(path, bytes(raw), error, number) from None


def _raw_records(path: Path) -> Iterator[bytes | msgspec.Raw]:
    start = read_start(path, 4096).lstrip()[:1]
    if start == b"{":
        with open_binary(path) as file:
            # by line, not decode_lines, which passes over what stands between two records
            lines = (line if number else line.removeprefix(MARK) for number, line in enumerate(file))
            yield from (line for line in lines if line.strip())
    elif start == b"[":
        yield from _list_records(path)
    else:
        raise BadInputError(path, "not JSON: expected a list of records, or one record a line")


def _list_records(path: Path) -> Iterator[bytes | msgspec.Raw]:
    """Yield the objects of a list as they pass by; a list that is not so plain is then looked at as a whole."""
    count, ended = 0, False
    with open_binary(path) as file:
        for raw in _passing(file):
            ended = raw is None
            if raw is not None:
                yield raw
                count += 1
    if not ended:
        with _mapped(path) as content:
            yield from _split(path, content)[count:]


def _passing(file: BinaryIO) -> Iterator[bytes | None]:
    """Yield each object of a JSON list, then None if nothing but the list's end follows."""
    buffer, place, size = file.read(_CHUNK).removeprefix(MARK), 0, _CHUNK
    expected = _FIRST
    while True:
        while found := expected.match(buffer, place):
            yield found[1]
            place, expected = found.end(), _NEXT
        more = file.read(size)
        if not more:
            break
        # a record that is longer than what was read is looked at again and again, but ever less often
        buffer, size = buffer[place:] + more, size if place else 2 * size
        place = 0
    if expected is _NEXT and _END.fullmatch(buffer, place):
        yield None


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap | bytes]:
    """Map the (decompressed) content into memory, so that a file of gigabytes costs pages and not heap."""
    with open_binary(path) as file:
        if not isinstance(file, gzip.GzipFile):
            yield _map(file)
            return
        with tempfile.TemporaryFile() as unpacked:
            shutil.copyfileobj(file, unpacked, 1 << 20)
            unpacked.flush()
            yield _map(cast(BinaryIO, unpacked))


def _map(file: BinaryIO) -> mmap.mmap | bytes:
    if os.fstat(file.fileno()).st_size == 0:
        return b""
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _split(path: Path, content: mmap.mmap | bytes) -> list[msgspec.Raw]:
    body: mmap.mmap | memoryview | bytes = memoryview(content)[3:] if content[:3] == MARK else content
    try:
        return msgspec.json.decode(body, type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(path, body, error) from None


def invalid(path: Path, record: str | None, error: msgspec.ValidationError, within: str = "") -> BadInputError:
    """Turn «Expected `float`, got `str` - at `$.a[0].b`» into a problem with a field, of all or within another."""
    problem, _, place = str(error).partition(" - at ")
    place = place.removeprefix("`key` in ").strip("`").removeprefix("$")
    field = (within + place).removeprefix(".") or None
    return BadInputError(path, problem[:1].lower() + problem[1:], record, field)


_STRING = r'"(?:[^"\\]++|\\.)*+"'
_OBJECT = r"\{(?:[^\"{}]++|" + _STRING + r")*+\}"
for _ in range(5):
    _OBJECT = r"\{(?:[^\"{}]++|" + _STRING + "|" + _OBJECT + r")*+\}"
_RECORD = re.compile(rb"\s*[\[,]?\s*" + _OBJECT.encode(), re.DOTALL)
_FIRST = re.compile(rb"\s*\[\s*(" + _OBJECT.encode() + rb")", re.DOTALL)
_NEXT = re.compile(rb"\s*,\s*(" + _OBJECT.encode() + rb")", re.DOTALL)
_END = re.compile(rb"\s*\]\s*")
_CHUNK = 1 << 20


def _count_records(content: mmap.mmap | memoryview | bytes, end: int) -> int:
    """Count the whole records before `end`, one after the other: objects within the broken one are none."""
    count, place = 0, 0
    while found := _RECORD.match(content, place, end):
        count, place = count + 1, found.end()
    return count


def _malformed(
    path: Path, content: mmap.mmap | memoryview | bytes, error: Exception, record: int | None = None
) -> BadInputError:
    """Say in which record malformed JSON breaks off; Python's json writes NaN and Infinity, which JSON has not."""
    if isinstance(error, RecursionError):
        return BadInputError(path, "JSON nested too deeply", record and f"record {record}")
    found = re.search(r"byte (\d+)", str(error))
    place = int(found[1]) if found else len(content)
    record = record or _count_records(content, place) + 1
    before = bytes(content[max(0, place - 200) : place]).decode("utf-8", "replace")
    literal = re.match(rb"NaN|Infinity|nan|inf", bytes(content[place : place + 8]))
    if literal:
        key, sign = re.findall(r'(?:"([^"]*)"\s*:)?\s*(-?)$', before)[0]
        problem = f"{sign}{literal[0].decode()} is not a number; expected a finite one"
        return BadInputError(path, problem, f"record {record}", key or None)
    return BadInputError(path, f"malformed JSON ({error})", f"record {record}")


def write_yaml(path: Path, value: object) -> None:
    """Write the fields of a record that have a value."""
    fields: dict[str, object] = msgspec.to_builtins(value)
    with write_atomically(path) as file:
        file.write(msgspec.yaml.encode({name: held for name, held in fields.items() if held not in (None, {}, [])}))


def write_json_list(path: Path, records: Iterator[object], indent: int | None = 4, newline: bool = True) -> None:
    """Write a JSON list record by record, in the layout of the official files; no indent: all on one line."""
    with write_atomically(path) as file:
        start, between, end = (b"[", b", ", b"]") if indent is None else (b"[\n", b",\n", b"\n]")
        for record in records:
            file.write(start + _laid_out(record, indent))
            start = between
        file.write(b"[]" if start != between else end)
        file.write(b"\n" if newline else b"")


def _laid_out(record: object, indent: int | None) -> bytes:
    if indent is None:
        return json.dumps(msgspec.to_builtins(record), ensure_ascii=False).encode()
    text = msgspec.json.format(msgspec.json.encode(record), indent=indent)
    # JSON strings hold no raw line ends, so every line end is layout
    return b" " * indent + text.replace(b"\n", b"\n" + b" " * indent)
