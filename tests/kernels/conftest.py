"""The kernels of `bertwright.model.kernels` without a GPU: their numbers by Triton's interpreter, and how they compile.

Triton decides when it is imported whether functions are interpreted. So the files of `interpreted` are collected only
by a process that is started for them (`test_interpreted.py`), or by hand: `TRITON_INTERPRET=1 pytest tests/kernels`.
"""

import os

collect_ignore = [] if os.environ.get("TRITON_INTERPRET") == "1" else ["interpreted"]
