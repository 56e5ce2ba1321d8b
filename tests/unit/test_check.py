"""What `check` says of this machine."""

from bertwright.check import environment


def test_the_environment_is_described() -> None:
    facts = environment()
    assert facts["processors"] >= 1 and facts["packages"]["torch"][0].isdigit()
