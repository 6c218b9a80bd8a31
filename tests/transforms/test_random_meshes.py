"""Random programs on the devices of meshes, a few: `tests.campaign meshes` tries many."""

from tests.fuzz.meshes import CAMPAIGN


def test_random_programs_on_meshes_give_the_whole() -> None:
    figures = CAMPAIGN.here(range(40))
    assert not figures.problems, figures.shown
    assert figures.count("equal") > 25
