"""Runs a program at a terminal: types a line, waits until it is read, presses Ctrl-C, and tells how the program ended.

Arguments: the program and its own. In front of them `--at TEXT KEYS` types nothing beforehand, waits until TEXT is shown
and presses KEYS, such as `n\\r` or `\\x04`. Prints what stood on the terminal, then `ended N` or `still there`.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

LIMIT_S = 60


def unread(terminal):
    """Bytes that were typed and not read yet."""
    return struct.unpack("i", fcntl.ioctl(terminal, termios.FIONREAD, b"\0" * 4))[0]


def main(words):
    controller, terminal = pty.openpty()
    question, keys = None, b"\x03"
    if words[0] == "--at":
        question, keys = words[1].encode(), words[2].encode().decode("unicode_escape").encode()
        words = words[3:]
        # A terminal of no width would break every line.
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
    else:
        # Typed before anybody can read it: what a terminal is given reaches it a moment later.
        os.write(controller, b"email\n")
        while unread(terminal) == 0:
            time.sleep(0.001)
    child = os.fork()
    if child == 0:
        os.close(controller)
        login(terminal)
        os.execvp(words[0], words)
    until = time.monotonic() + LIMIT_S
    shown = b""
    pressed = False
    while time.monotonic() < until:
        if not pressed and (question in shown if question else unread(terminal) == 0):
            os.write(controller, keys)
            pressed = True
        if select.select([controller], [], [], 0.05)[0]:
            shown += os.read(controller, 65536)
            continue
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            print(shown.decode(), f"ended {os.waitstatus_to_exitcode(status)}", sep="")
            return
    os.kill(child, signal.SIGKILL)
    print(shown.decode(), "still there", sep="")


def login(terminal):
    """The terminal becomes that of a session of its own, so that Ctrl-C reaches the program."""
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    for number in range(3):
        os.dup2(terminal, number)


main(sys.argv[1:])
