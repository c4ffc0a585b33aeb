"""Files at the edge: compressed or not, read with clear errors, written whole or not at all."""

import gzip
import hashlib
import json
import mmap
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, TypeVar, cast

import msgspec
import polars as pl

from rejoinder.errors import UserError

Record = TypeVar("Record")


class BadInputError(UserError):
    """Something a person can mend in an input: names the file, the record, the field and what was expected."""

    def __init__(self, source: object, problem: str, record: object = None, field: str | None = None) -> None:
        problem = " ".join(line.strip() for line in problem.splitlines())  # libraries' messages may have several
        self.source, self.record, self.field, self.problem = source, record, field, problem
        places = [str(place) for place in (source, record, field) if place is not None]
        super().__init__(printable(": ".join([*places, problem])))


def printable(text: str) -> str:
    """Put a mark for what cannot be printed: a file's content must not steer a terminal."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def is_gzip(path: Path) -> bool:
    """Whether the file starts with gzip's two magic bytes, whatever its name."""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


@contextmanager
def open_binary(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, decompressing gzip, with errors that name the file."""
    try:
        if path.is_fifo() or path.is_char_device() or path.is_socket():
            # files are looked at more than once, which a pipe cannot bear
            raise BadInputError(path, "is a pipe or a device; expected a regular file")
        with cast(BinaryIO, gzip.open(path, "rb")) if is_gzip(path) else path.open("rb") as file:
            yield file
    except FileNotFoundError:
        raise BadInputError(path, "no such file") from None
    except IsADirectoryError:
        raise BadInputError(path, "is a folder; expected a file") from None
    except PermissionError:
        raise BadInputError(path, "may not be read (permission denied)") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadInputError(path, f"damaged gzip file ({error})") from None
    except OSError as error:
        raise BadInputError(path, f"cannot be read ({error.strerror})") from None


def read_start(path: Path, size: int = 1 << 16) -> bytes:
    """Return the first bytes of the content, decompressed."""
    with open_binary(path) as file:
        return file.read(size)


def read_lines(path: Path, *, errors: str = "strict") -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line without its end), decompressed, decoded as UTF-8, with or without its mark."""
    with open_binary(path) as file:
        for number, line in enumerate(file, 1):
            try:
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8", errors).rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise BadInputError(path, f"not UTF-8 ({error.reason})", f"line {number}") from None


def read_parquet(path: Path) -> pl.DataFrame:
    """Read a Parquet table."""
    with open_binary(path) as file:
        # a path for polars to map where it can; but `[` in a name is no pattern, nor `a=b` in a folder's a column
        source = file.read() if isinstance(file, gzip.GzipFile) else path
        try:
            return pl.read_parquet(source, glob=False, hive_partitioning=False)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            problem = str(error).partition("\n")[0]
            raise BadInputError(path, f"not a Parquet table, or a damaged one ({problem})") from None


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


def read_json(path: Path, kind: type[Record]) -> Record:
    """Read a file that is one JSON value."""
    return _decoded(path, kind, "JSON", msgspec.json.decode)


def read_yaml(path: Path, kind: type[Record]) -> Record:
    """Read a file that is one YAML document."""
    return _decoded(path, kind, "YAML", msgspec.yaml.decode)


def _decoded(path: Path, kind: type[Record], language: str, decode: Callable[..., Record]) -> Record:
    with open_binary(path) as file:
        content = file.read().removeprefix(_MARK)
    if not content.strip():
        raise BadInputError(path, "is empty")
    try:
        return decode(content, type=kind)
    except msgspec.ValidationError as error:
        raise _invalid(path, None, error) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInputError(path, f"malformed {language} ({error})") from None


def read_json_records(path: Path, kind: type[Record]) -> Iterator[tuple[int, Record]]:
    """Yield (record number from 1, record) of a JSON list of objects, or of JSON lines, holding few at a time."""
    decoder = msgspec.json.Decoder(kind)
    for number, raw in enumerate(_raw_records(path), 1):
        try:
            yield number, decoder.decode(raw)
        except msgspec.ValidationError as error:
            raise _invalid(path, f"record {number}", error) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _malformed(path, bytes(raw), error, number) from None


def _raw_records(path: Path) -> Iterator[bytes | msgspec.Raw]:
    start = read_start(path, 4096).removeprefix(_MARK).lstrip()[:1]
    if start == b"{":
        with open_binary(path) as file:
            # by line, not decode_lines, which passes over what stands between two records
            lines = (line if number else line.removeprefix(_MARK) for number, line in enumerate(file))
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
    buffer, place, size = file.read(_CHUNK).removeprefix(_MARK), 0, _CHUNK
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


def _split(path: Path, content: mmap.mmap | bytes) -> list[msgspec.Raw]:
    body: mmap.mmap | memoryview | bytes = memoryview(content)[3:] if content[:3] == _MARK else content
    try:
        return msgspec.json.decode(body, type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(path, body, error) from None


def _invalid(path: Path, record: str | None, error: msgspec.ValidationError) -> BadInputError:
    """Turn «Expected `float`, got `str` - at `$.a[0].b`» into a problem with a field."""
    problem, _, place = str(error).partition(" - at ")
    field = place.strip("`").removeprefix("$").removeprefix(".") or None
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
_MARK = b"\xef\xbb\xbf"


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


@contextmanager
def write_atomically(path: Path) -> Iterator[IO[bytes]]:
    """Write to a temporary file beside `path` and rename it when all went well; gzip if the name ends in .gz."""
    try:
        with _temporary(path) as file:
            yield file
    except OSError as error:
        raise BadInputError(path, f"cannot be written ({error.strerror})") from None


@contextmanager
def _temporary(path: Path) -> Iterator[IO[bytes]]:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as raw:
            if path.suffix == ".gz":
                # no file name and no time in the header: the same content gives the same bytes
                with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
                    yield cast(IO[bytes], packed)
            else:
                yield raw
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_yaml(path: Path, value: object) -> None:
    """Write the fields of a record that have a value."""
    fields: dict[str, object] = msgspec.to_builtins(value)
    with write_atomically(path) as file:
        file.write(msgspec.yaml.encode({name: held for name, held in fields.items() if held not in (None, {})}))


def spare_inputs(out: Path, *inputs: Path | None) -> None:
    """Refuse to write over what is read."""
    for given in inputs:
        if given is not None and out.resolve() == given.resolve():
            raise BadInputError(out, "would be overwritten; name another file to write")


def clear_folder(folder: Path, mark: str | None = None, parts: tuple[str, ...] = ()) -> None:
    """Make room for new output: a folder that holds `mark` from last time loses its `parts`; others must be empty."""
    if folder.exists() and not folder.is_dir():
        raise BadInputError(folder, "is a file; expected a folder")
    if folder.is_dir() and any(folder.iterdir()) and not (mark and (folder / mark).exists()):
        raise BadInputError(folder, "is not empty; give another folder, so that nothing is mixed up")
    for part in parts:
        shutil.rmtree(folder / part, ignore_errors=True)


@contextmanager
def staged_folder(out: Path, mark: str, kept: str) -> Iterator[Path]:
    """Yield a folder that takes the place of `out` when all went well.

    `out` must be new, empty or hold `mark` from an earlier time. After a failure `out` is as it was, and of the staged
    folder only `kept` is left, for the next attempt, if it holds more than a note of what it is for.
    """
    clear_folder(out, mark)
    if out.resolve() == Path.cwd():
        raise BadInputError(out, "is the folder you are in; give another, which can be replaced as a whole")
    shown, out = out, out.resolve()
    stage, old = out.with_name(f".{out.name}.part"), out.with_name(f".{out.name}.old")
    with new_folders(out.parent, shown), _alone_in(stage, shown):
        _keep_only(stage, kept)  # what a process that was killed may have left
        try:
            yield stage
        except BaseException:
            _keep_only(stage, kept)
            if sum(path.is_file() for path in stage.rglob("*")) < 2:
                shutil.rmtree(stage)
            raise
        shutil.rmtree(old, ignore_errors=True)
        if out.exists():
            out.rename(old)
        stage.rename(out)
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def new_folders(folder: Path, shown: Path | None = None) -> Iterator[None]:
    """Make a folder and those above it; after a failure those that are new and empty go again."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(shown or folder, f"cannot be written ({error.strerror})") from None
    try:
        yield
    except BaseException:
        for path in made:
            if not any(path.iterdir()):
                path.rmdir()
        raise


@contextmanager
def _alone_in(stage: Path, out: Path) -> Iterator[None]:
    """Make a folder and hold it, so that no other process writes to it; a process that dies lets go of it."""
    import fcntl

    try:
        stage.mkdir(exist_ok=True)
        handle = os.open(stage, os.O_RDONLY)
    except OSError as error:
        raise BadInputError(out, f"cannot be written ({error.strerror})") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise BadInputError(out, "another process is writing this folder") from None
    finally:
        os.close(handle)


def _keep_only(folder: Path, kept: str) -> None:
    for path in folder.iterdir():
        if path.name != kept:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def fingerprint(path: Path) -> str:
    """Return the first twelve digits of the content's SHA-256, files of a folder in order of their names."""
    digest = hashlib.sha256()
    for part in sorted(path.glob("*.parquet")) if path.is_dir() else [path]:
        with open_binary(part) as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()[:12]


def shortened(notes: list[str], most: int = 10) -> tuple[str, ...]:
    """Return the first notes, and how many more there are."""
    more = (f"and {len(notes) - most:,} more such mistakes",) if len(notes) > most else ()
    return (*notes[:most], *more)


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
