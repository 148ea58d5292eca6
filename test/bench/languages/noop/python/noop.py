"""The no-op executor on the Python SDK."""

import os

from callfan import Executor

ex = Executor(pool="bench-python", concurrency=int(os.environ["BENCH_CONCURRENCY"]))


@ex.function(effects="none")
async def noop_python(text: str) -> str:
    """Does nothing."""
    return "ok"


@ex.function(effects="none")
def noop_python_sync(text: str) -> str:
    """Does nothing, in a thread."""
    return "ok"


ex.run()
