"""Pages that open offline: each one file, with its style and charts (SVG) inside."""

from pathlib import Path

import jinja2

from rejoinder import __version__
from rejoinder.files import write_atomically
from rejoinder.text import counted


def write_page(path: Path, template: str, **values: object) -> None:
    """Write a page by one of the templates of this folder."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rejoinder", "report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    page = environment.get_template(template).render(version=__version__, counted=counted, **values)
    with write_atomically(path) as file:
        file.write(page.encode())
