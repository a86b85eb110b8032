"""The first signal is noted; all others do what they did before."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from types import FrameType

import pytest

from pipelines.running.signals import SIGNALS, first_signal


@pytest.fixture
def taken() -> Iterator[list[int]]:
    """The signals that a handler of before has taken."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    taken: list[int] = []
    for number in SIGNALS:
        signal.signal(number, lambda number, _: taken.append(number))
    yield taken
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_is_noted_and_the_second_does_what_it_did(
    taken: list[int], number: signal.Signals
) -> None:
    noted: list[int] = []
    with first_signal(noted.append) as end:
        signal.raise_signal(number)
        assert (noted, taken) == ([number], [])
        end()
        signal.raise_signal(number)
    signal.raise_signal(number)
    assert (noted, taken) == ([number], [number] * 2)


def test_a_handler_that_is_set_in_the_block_stays_and_still_reaches_the_one_before(
    taken: list[int],
) -> None:
    """As that of Beam, which stops its job server and then calls the one it found."""
    noted: list[int] = []
    seen: list[int] = []
    with first_signal(noted.append):
        found = signal.getsignal(signal.SIGINT)
        assert callable(found)

        def also(number: int, frame: FrameType | None) -> None:
            seen.append(number)
            found(number, frame)

        signal.signal(signal.SIGINT, also)
        signal.raise_signal(signal.SIGINT)
        assert (noted, taken) == ([signal.SIGINT], [])
    assert signal.getsignal(signal.SIGINT) is also
    signal.raise_signal(signal.SIGINT)
    assert (noted, taken, seen) == ([signal.SIGINT], [signal.SIGINT], [signal.SIGINT] * 2)


def test_signals_that_are_ignored_stay_so(taken: list[int]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with first_signal(taken.append):
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert taken == [signal.SIGTERM]
