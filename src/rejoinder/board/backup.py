"""Everything of a board in one archive: tables as JSON lines, files as they are; for SQLite and PostgreSQL alike."""

import base64
import io
import json
import os
import shutil
import tarfile
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from alembic.util import CommandError
from sqlalchemy import JSON, Boolean, Connection, DateTime, LargeBinary, MetaData, Table, insert, inspect, select
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from rejoinder.board.database import Database, DatabaseError, migrate, revision_of, sqlite_url
from rejoinder.board.site import PARTS, Site, make_folder
from rejoinder.errors import UserError
from rejoinder.files import BadInputError, read_start, write_atomically

_VERSIONS = "alembic_version"
_UNFIT = (LookupError, AttributeError, TypeError, ValueError, SQLAlchemyError, CommandError)
"""What rows or a revision that no board has written lead to."""


def write_backup(site: Site, out: Path) -> None:
    """Write an archive, gzipped if its name says so: the tables of one moment, and then the files.

    Only its owner may read it, as with the board's folder: it holds the truth.
    """
    with write_atomically(out, mode=0o600) as file, tarfile.open(fileobj=file, mode="w") as archive:
        with site.database.snapshot() as connection:
            _add(archive, "revision", (revision_of(connection) or "").encode())
            for table in _tables(connection):
                rows = connection.execute(select(table)).mappings()
                lines = [json.dumps({key: _to_json(value) for key, value in row.items()}) for row in rows]
                _add(archive, f"tables/{table.name}.jsonl", "\n".join(lines).encode())
        for part in PARTS:
            _add_files(archive, site.folder, part)


def _add_files(archive: tarfile.TarFile, folder: Path, part: str) -> None:
    """Add the files of a part but for those that are being received, and for those that go while they are read."""
    found = (Path(where) / name for where, _, names in os.walk(folder / part) for name in names if name[0] != ".")
    for path in sorted(found):
        with suppress(FileNotFoundError):  # the run was refused just now, or a result is of no use any more
            archive.add(path, str(path.relative_to(folder)))


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def _tables(connection: Connection) -> list[Table]:
    """Return the tables as they are in this database, those that others refer to first."""
    found = MetaData()
    found.reflect(connection)
    return [table for table in found.sorted_tables if table.name != _VERSIONS]


def _to_json(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    return value


def _from_json(value: Any, kind: object, zoned: bool) -> Any:
    if value is None or isinstance(kind, JSON):
        return value
    if isinstance(kind, LargeBinary):
        return base64.b64decode(value)
    if isinstance(kind, DateTime):
        moment = datetime.fromisoformat(value)
        return moment if zoned else moment.replace(tzinfo=None)
    return bool(value) if isinstance(kind, Boolean) else value


def read_backup(path: Path, folder: Path, database: str | None = None) -> None:
    """Make a new board of an archive, in the schema that it was written in, and bring that up to date."""
    read_start(path, 1)  # what is no file at all is told as such
    make_folder(folder)
    try:
        _restore(path, folder, database)
    except BaseException:
        shutil.rmtree(folder)
        raise


def _restore(path: Path, folder: Path, database: str | None) -> None:
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.name.startswith(tuple(f"{part}/" for part in PARTS)):
                    _unpack(archive, member, folder)
            with closing(Database(database or sqlite_url(folder))) as restored:
                _fill(restored, archive)
    except UserError:
        raise
    except OperationalError as error:
        raise DatabaseError(error) from None
    except (tarfile.TarError, OSError, EOFError, *_UNFIT) as error:
        raise BadInputError(path, f"not a backup of a board, or a damaged one ({error})") from None


def _unpack(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Write one file; not by `extractall`, whose filter against hostile archives came with Python 3.11.4."""
    target = folder / member.name
    if member.isdir():
        return
    content = archive.extractfile(member) if member.isfile() and ".." not in target.parts else None
    if content is None:
        raise tarfile.TarError(f"{member.name} is no plain file of a board")
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        shutil.copyfileobj(content, file)
    target.chmod(member.mode & 0o755)


def _fill(restored: Database, archive: tarfile.TarFile) -> None:
    """Make and fill all tables in one transaction, so that a damaged archive leaves none behind."""
    with restored.migrating() as connection:
        if inspect(connection).get_table_names():
            raise UserError("the database holds tables already; give an empty one")
        migrate(connection, _read(archive, "revision").decode())
        zoned = connection.dialect.name == "postgresql"
        for table in _tables(connection):
            kinds = {column.name: column.type for column in table.columns}
            rows = [json.loads(line) for line in _read(archive, f"tables/{table.name}.jsonl").splitlines()]
            filled = [{key: _from_json(value, kinds[key], zoned) for key, value in row.items()} for row in rows]
            if filled:
                connection.execute(insert(table), filled)
        migrate(connection)


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.extractfile(name)
    if member is None:
        raise KeyError(f"{name} is no file")
    return member.read()
