"""Starts the command line. It is light, so that an interrupt during the other imports ends it without a traceback.

The script that calls it, `scripts/podium-python`, handles interrupts while this module is imported.
"""

import os
import signal
import sys

EXIT_INTERRUPTED = 130
REPEATED_AFTER = 5.0
"""Seconds after which an interrupt that did not end the command is repeated."""


def main() -> None:
    """Run the command line; an interrupt ends it with exit code 130 from the first moment to the last."""
    try:
        _run()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


def _leave(number: int, frame: object) -> None:
    """Exit at once: the importer of a half-imported module would report the interrupt."""
    os._exit(EXIT_INTERRUPTED)


def _run() -> None:
    # The parent process may want it to ignore interrupts, as nohup does.
    heeds = callable(signal.getsignal(signal.SIGINT))
    if heeds:
        signal.signal(signal.SIGINT, _leave)
    from podium.cli.app import main as run

    try:
        if heeds:
            signal.signal(signal.SIGINT, _interrupt)
            signal.signal(signal.SIGALRM, _interrupt)
        run()
    finally:
        # Only the interpreter's own shutdown is left, which would report an interrupt.
        if heeds:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGALRM, signal.SIG_IGN)


def _interrupt(number: int, frame: object) -> None:
    """Interrupt, and repeat it after some seconds: the interrupted code may drop the exception."""
    sys.unraisablehook = _in_a_finaliser
    signal.setitimer(signal.ITIMER_REAL, REPEATED_AFTER)
    raise KeyboardInterrupt


def _in_a_finaliser(dropped: "sys.UnraisableHookArgs") -> None:
    """Repeat an interrupt that came in a finaliser, where Python drops it; suppress reports of finalisers that fail
    after it.
    """
    if dropped.exc_type is KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, 0.01)


if __name__ == "__main__":
    main()
