"""Tracks and what they are called."""

import pytest

from rejoinder.board.competitions import Place, add_track, store_truth
from rejoinder.errors import UserError


def test_tracks_of_names_that_no_address_can_hold(world):
    """What is left of a Chinese or a Japanese name in an address is nothing, and yet they are two tracks."""
    first = world.track(world.truth_file, ["NMD(A)"], Place("中文", "质量"))

    def add(*place):
        files = store_truth(world.site, [world.truth_file])
        return add_track(world.site, world.scorer, first.competition, files, Place(*place), ["NMD(A)"]).slug

    assert [first.slug, add("日本語", "品質"), add("English", "Quality")] == ["x", "x-2", "english-quality"]
    assert add() == "main"
    for again in (("中文", "质量"), ("ENGLISH", "quality"), ()):
        with pytest.raises(UserError, match=r"there is a track '.*' already"):
            add(*again)
    assert len(list(world.site.truths.iterdir())) == 4
