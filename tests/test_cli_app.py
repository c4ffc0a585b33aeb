import os
import signal
import threading
import time

import pytest
import typer

from rejoinder.cli.app import resumable


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_is_interrupted_or_stopped_says_how_it_goes_on(number, capsys):
    with pytest.raises(typer.Exit) as stop, resumable():
        os.kill(os.getpid(), number)
        time.sleep(5)
    assert stop.value.exit_code == 128 + number  # as a shell says of what a signal ended
    assert capsys.readouterr().err == "interrupted; the same command goes on with what was kept\n"
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_signals_are_left_alone_in_threads():
    done = []

    def work():
        with resumable():
            done.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [signal.SIG_DFL]
