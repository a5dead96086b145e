"""Runs a program on a terminal, types keys like a person, and prints how the program ended.

Arguments: `--columns N` (default 200), any number of `--at TEXT KEYS`, the program and its arguments. KEYS, such as
`n\\r` or `\\x04`, are typed when TEXT appears after the last TEXT; spaces and line breaks do not count. Instead of keys,
`hang-up` closes the terminal, `columns N` changes its width, and `kill NAME` sends the program a signal. A program that
stops (Ctrl-Z) is continued at once, as with `fg`, and `stopped` is printed in between. Without `--at` a line is typed
first, and Ctrl-C once the program has read it. Prints the screen, then `ended N` or `still there`, and any fault in the
terminal that the program leaves behind.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

LIMIT_S = 60


def unread(terminal):
    """Returns how many typed bytes are unread."""
    return struct.unpack("i", fcntl.ioctl(terminal, termios.FIONREAD, b"\0" * 4))[0]


def widen(terminal, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


def plain(text):
    """Removes control sequences and spaces, because a narrow terminal breaks lines anywhere."""
    return re.sub(rb"\s+", b"", re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", text))


def read_options(words):
    columns, steps = 200, []
    while words[0] in ("--columns", "--at"):
        if words[0] == "--columns":
            columns, words = int(words[1]), words[2:]
        else:
            steps.append((plain(words[1].encode()), words[2]))
            words = words[3:]
    return columns, steps, words


def main(words):
    controller, terminal = pty.openpty()
    columns, steps, words = read_options(words)
    # A terminal without a width would break every line.
    widen(terminal, columns)
    is_typed_ahead = not steps
    if is_typed_ahead:
        # Types before the program can read, and waits until the terminal has the bytes.
        os.write(controller, b"email\n")
        while unread(terminal) == 0:
            time.sleep(0.001)
    child = os.fork()
    if child == 0:
        os.close(controller)
        login(terminal)
        if any("x1a" in keys for _, keys in steps):
            shell()
        os.execvp(words[0], words)
    until = time.monotonic() + LIMIT_S
    shown = b""
    read = 0
    while time.monotonic() < until:
        if is_typed_ahead and unread(terminal) == 0:
            os.write(controller, b"\x03")
            is_typed_ahead = False
        if steps and controller is not None:
            at = plain(shown).find(steps[0][0], read)
            if at >= 0:
                read = at + len(steps[0][0])
                keys = steps.pop(0)[1]
                if keys.startswith("kill "):
                    os.kill(child, signal.Signals[keys.split()[1]])
                else:
                    controller = press(keys, controller, terminal)
        if controller is not None and select.select([controller], [], [], 0.05)[0]:
            shown += os.read(controller, 65536)
            continue
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            left = "" if controller is None else damage(terminal, shown)
            print(shown.decode(), f"ended {os.waitstatus_to_exitcode(status)}{left}", sep="")
            return
        if controller is None:
            time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    print(shown.decode(), "still there", sep="")


def press(keys, controller, terminal):
    """Returns the controller, or None after it is closed."""
    if keys == "hang-up":
        os.close(controller)
        return None
    if keys.startswith("columns "):
        widen(terminal, int(keys.split()[1]))
    else:
        os.write(controller, keys.encode().decode("unicode_escape").encode("latin-1"))
    return controller


def damage(terminal, shown):
    modes = termios.tcgetattr(terminal)[3]
    hidden, visible = shown.rfind(b"\x1b[?25l"), shown.rfind(b"\x1b[?25h")
    found = [
        "no echo" if not modes & termios.ECHO else "",
        "raw keys" if not modes & termios.ICANON else "",
        "no cursor" if hidden > visible else "",
    ]
    told = ", ".join(one for one in found if one)
    return f" with {told}" if told else ""


def login(terminal):
    """Makes the terminal control a new session, so that Ctrl-C reaches the program."""
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    for number in range(3):
        os.dup2(terminal, number)
    os.close(terminal)


def shell():
    """Returns in a child in the foreground; the parent continues the child whenever it stops."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    modes = termios.tcgetattr(0)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        return
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            os._exit(os.waitstatus_to_exitcode(status))
        termios.tcsetattr(0, termios.TCSANOW, modes)
        os.write(1, b"stopped\n")
        os.kill(job, signal.SIGCONT)


main(sys.argv[1:])
