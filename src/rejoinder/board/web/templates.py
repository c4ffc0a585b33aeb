"""How pages are rendered: everything escaped, nothing undefined."""

from datetime import datetime

import jinja2

from rejoinder import __version__
from rejoinder.board.web.markdown import to_html


def make_templates() -> jinja2.Environment:
    """Return the pages' templates."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rejoinder.board"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["markdown"] = to_html
    environment.filters["when"] = _when
    environment.filters["bytes"] = _bytes
    environment.globals["version"] = __version__
    environment.globals["error"] = ""
    return environment


def _when(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def _bytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB" if size >= 1000 else f"{size} bytes"
