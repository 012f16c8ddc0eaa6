from tests.strategies import X


def test_x() -> None:
    assert X == 1
