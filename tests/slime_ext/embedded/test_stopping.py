"""Which signals ask a run to stop, and which stop it at once."""

from __future__ import annotations

import signal

import pytest

from slime_ext.embedded.stopping import SIGNALS, stop_on_signals


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_a_request_and_repeats_of_a_scheduler_change_nothing(
    number: signal.Signals,
) -> None:
    before = signal.getsignal(number)
    with stop_on_signals() as stop:
        assert not stop.requested
        signal.raise_signal(number)
        assert stop.reason == number.name
        for repeat in (signal.SIGTERM, signal.SIGUSR1):
            signal.raise_signal(repeat)
        assert stop.reason == number.name
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(number) is before
