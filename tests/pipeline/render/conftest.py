import pytest

from pipeline.render.drawn_face import DrawnFace


@pytest.fixture(scope="session")
def face() -> DrawnFace:
    """The character as shipped; painting it takes most of a second."""
    return DrawnFace()
