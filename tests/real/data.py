"""Where real data are: below REJOINDER_DATA, by default ../shared/data; tests skip what is missing."""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("REJOINDER_DATA", Path(__file__).parents[3] / "shared" / "data"))


def real(name: str) -> Path:
    """Return a real file or folder."""
    path = DATA / name
    if not path.exists():
        pytest.skip(f"real data are not here: {name} is missing below REJOINDER_DATA ({DATA})")
    return path


def needs(name: str) -> pytest.MarkDecorator:
    """Mark tests that cannot do without a real file or folder."""
    return pytest.mark.skipif(not (DATA / name).exists(), reason=f"no {name} in {DATA}; set REJOINDER_DATA")
