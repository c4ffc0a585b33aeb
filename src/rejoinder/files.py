"""Files at the edge: compressed or not, read with clear errors, written whole or not at all."""

import gzip
import hashlib
import os
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, cast

import polars as pl

from rejoinder.errors import UserError, lack_of_room

MARK = b"\xef\xbb\xbf"
"""What some programs put before UTF-8."""


class BadInputError(UserError):
    """Something a person can mend in an input: names the file, the record, the field and what was expected."""

    def __init__(self, source: object, problem: str, record: object = None, field: str | None = None) -> None:
        problem = " ".join(line.strip() for line in problem.splitlines())  # libraries' messages may have several
        self.source, self.record, self.field, self.problem = source, record, field, problem
        places = [str(place) for place in (source, record, field) if place is not None]
        super().__init__(printable(": ".join([*places, problem])))


class UnwrittenError(BadInputError):
    """What cannot be written, and why."""

    def __init__(self, target: Path, reason: object) -> None:
        super().__init__(target, f"cannot be written ({reason})")
        self.target, self.reason = target, reason


def printable(text: str) -> str:
    """Put a mark for what cannot be printed: it could steer a terminal, and PostgreSQL refuses a NUL."""
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
    """Return the first bytes of the content, decompressed, without the mark of UTF-8."""
    with open_binary(path) as file:
        return file.read(size + len(MARK)).removeprefix(MARK)[:size]


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
def write_atomically(path: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Write to a temporary file beside `path` and rename it when all went well; gzip if the name ends in .gz.

    Where `path` is a link, it stays one, and what it leads to is written. The mode is what the umask is taken from.
    """
    try:
        with naming_full(path), _temporary(file_to_write(path), path.suffix == ".gz", mode) as file:
            yield file
    except OSError as error:
        raise UnwrittenError(path, error.strerror or error) from None


@contextmanager
def naming_full(path: Path) -> Iterator[None]:
    """Let the errors by which libraries tell of a full disk name what was to be written."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        reason = lack_of_room(error)
        if reason is None:
            raise
        raise UnwrittenError(path, reason) from None


def file_to_write(path: Path) -> Path:
    """Return the file that a path leads to, there or not; refuse pipes and devices, which it would replace."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    except OSError as error:
        raise UnwrittenError(path, error.strerror) from None
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise BadInputError(path, "is a pipe or a device; name a file to write")
    return path.resolve() if path.is_symlink() else path


@contextmanager
def _temporary(path: Path, packed: bool, mode: int) -> Iterator[IO[bytes]]:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as raw:
            if packed:
                # no file name and no time in the header: the same content gives the same bytes
                with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as file:
                    yield cast(IO[bytes], file)
            else:
                yield raw
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(mode & ~umask)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


_TASK = ("task.yaml", "examples.parquet", "dialogues.parquet")
"""What a task folder is known by."""


def spare_inputs(out: Path, *inputs: Path | None) -> None:
    """Refuse what would harm an input, or is no file to write, before the work begins.

    That is, to write over what is read (a file, a folder, a file in it), to a task's folder, over any folder, a pipe or
    a device.
    """
    written = file_to_write(out).resolve()
    for given in filter(None, inputs):
        read = Path(os.path.realpath(given))  # of links that lead in a circle, too, which reading will tell
        within = read in written.parents
        if written == read or (out.is_file() and within):
            raise BadInputError(out, "would be overwritten; name another file to write")
        if within and any((given / name).exists() for name in _TASK):
            raise BadInputError(out, f"lies in the task {given}, which is read; name a file elsewhere")
    if out.is_dir():
        raise BadInputError(out, "is a folder; name a file to write")


_TELLING = ("*.parquet", "*.safetensors", "*.bin", "tokenizer.json", "vocab.txt")
"""What a folder is known by."""


def fingerprint(*paths: Path) -> str:
    """Return the first twelve digits of the contents' SHA-256; of a folder, that of its tables, or its encoder."""
    digest = hashlib.sha256()
    for path in paths:
        held = sorted(part for pattern in _TELLING for part in path.glob(pattern))
        for part in held if path.is_dir() else [path]:
            with open_binary(part) as file:
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
    return digest.hexdigest()[:12]
