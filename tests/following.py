"""Runs a module as `python -m` would, in a process that ends with the one that started it, however that ends.

    python tests/following.py PARENT MODULE WORDS...

For parents that cannot set this when they start a process, such as Node's tests. PARENT is the process that starts it. On systems
other than Linux the module does not end with it.
"""

from __future__ import annotations

import runpy
import sys

from godwit.children import follow_parent

if __name__ == "__main__":
    _, parent, module, *words = sys.argv
    follow_parent(int(parent))()
    sys.argv = [module, *words]
    sys.path.pop(0)  # this file's folder, which no module is looked for in
    runpy.run_module(module, run_name="__main__", alter_sys=True)
