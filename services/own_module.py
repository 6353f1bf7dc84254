"""How a module of ours is run in a process of its own."""

import sys


def command(module: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs `module` on this interpreter.

    -P: a folder in the current directory that is named like one of our packages is not taken for it.
    """
    return (sys.executable, "-P", "-m", module, *arguments)
