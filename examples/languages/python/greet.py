"""Answers greet_python, one of the five languages of callfan demo --languages."""

import platform

from callfan import Executor

ex = Executor(pool="greeters-python")


@ex.function(effects="none")
def greet_python(name: str) -> str:
    """Greet somebody from Python.

    Args:
        name: who is greeted
    """
    return f"Hello, {name}, from Python {platform.python_version()}."


if __name__ == "__main__":
    ex.run()
