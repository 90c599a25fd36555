"""One or more wrong files for every tidy rule, with what the rule must say about each.

Each row: the rule's name, the path, the text, the expected report without the path. A row whose
report is empty is a right file that looks almost wrong.
"""

from __future__ import annotations

DOC = '"""Role."""\n'

PLANTED: tuple[tuple[str, str, str, str], ...] = (
    (
        "layers",
        "compiler/passes/bad.py",
        "import tracemill.runtime",
        "1: compiler may not import runtime",
    ),
    (
        "layers",
        "compiler/bad.py",
        "from . import types\nfrom .. import optim",
        "2: compiler may not import frontend",
    ),
    (
        "layers",
        "runtime/bad.py",
        "from tracemill.backends import load",
        "1: runtime may not import backends",
    ),
    (
        "layers",
        "runtime/bad.py",
        "def f():\n    from ..backends.cpu import x",
        "2: runtime may not import backends",
    ),
    ("layers", "backends/cpu/bad.py", "import tracemill", "1: backends may not import frontend"),
    ("layers", "backends/__init__.py", "from .. import compiler", ""),
    ("layers", "frontend/good.py", "from tracemill.backends import load", ""),
    (
        "compiler_order",
        "compiler/ops/bad.py",
        "from ..ir import graph",
        "1: compiler/ops may not import ir",
    ),
    (
        "compiler_order",
        "compiler/types.py",
        "from .ops.definition import OpDef",
        "1: compiler/types may not import ops",
    ),
    (
        "compiler_order",
        "compiler/passes/bad.py",
        "from ..transforms import gradients",
        "1: compiler/passes may not import transforms",
    ),
    (
        "compiler_order",
        "compiler/ir/bad.py",
        "from tracemill.compiler import Graph",
        "1: the compiler may not import its own façade for Graph",
    ),
    (
        "compiler_order",
        "compiler/novelty.py",
        DOC,
        "1: compiler/novelty has no row in ORDER of tests/tidy/import_rules.py",
    ),
    ("compiler_order", "compiler/dims.py", "from . import types", ""),
    (
        "compiler_order",
        "compiler/compile.py",
        "from .passes import PIPELINE\nfrom .plan import Plan",
        "",
    ),
    (
        "compiler_purity",
        "compiler/ir/bad.py",
        "import os.path",
        "1: the compiler may not import os",
    ),
    (
        "compiler_purity",
        "compiler/ir/bad.py",
        "from time import monotonic",
        "1: the compiler may not import time",
    ),
    (
        "compiler_purity",
        "compiler/ir/bad.py",
        "import scipy",
        "1: the compiler may not import scipy",
    ),
    (
        "compiler_purity",
        "compiler/ir/bad.py",
        "x = open('f')",
        "1: the compiler may not open files",
    ),
    (
        "compiler_purity",
        "compiler/ir/good.py",
        "import math\nimport numpy as np\nimport ml_dtypes",
        "",
    ),
    (
        "runtime_rim",
        "runtime/bad.py",
        "from pathlib import Path",
        "1: pathlib.Path belongs at the rim of the runtime",
    ),
    (
        "runtime_rim",
        "runtime/bad.py",
        "def f():\n    return open('f')",
        "2: open() belongs at the rim of the runtime",
    ),
    (
        "runtime_rim",
        "runtime/bad.py",
        "from os import urandom",
        "1: os.urandom belongs at the rim of the runtime",
    ),
    (
        "runtime_rim",
        "runtime/bad.py",
        "import os\nos.replace(a, b)",
        "2: os.replace belongs at the rim of the runtime",
    ),
    (
        "runtime_rim",
        "runtime/bad.py",
        "import random\nx = random.random()",
        "2: random.random belongs at the rim of the runtime",
    ),
    (
        "runtime_rim",
        "runtime/good.py",
        "import os, random\nx = os.path.join(a, b)\nr = random.Random(1)",
        "",
    ),
    (
        "llvmlite_door",
        "backends/cpu/bad.py",
        "from llvmlite import ir",
        "1: llvmlite may be imported below backends/llvm only",
    ),
    ("llvmlite_door", "backends/llvm/good.py", "from llvmlite import ir", ""),
    (
        "numba_door",
        "frontend/bad.py",
        "import numba.core",
        "1: numba may be imported by the listed bridges only",
    ),
    (
        "imports_at_the_top",
        "frontend/bad.py",
        "class A:\n  def f(self):\n    import math",
        "3: import inside f(): move it to the top of the file",
    ),
    (
        "imports_at_the_top",
        "frontend/bad.py",
        "def f():\n  return importlib.import_module('math')",
        "2: import inside f(): move it to the top of the file",
    ),
    ("imports_at_the_top", "frontend/good.py", "if TYPE_CHECKING:\n  import math", ""),
    (
        "environment_variables",
        "backends/bad.py",
        "import os\nx = os.environ['HOME']",
        "2: environment variables are read in the frontend and handed down",
    ),
    (
        "environment_variables",
        "runtime/bad.py",
        "x = os.getenv('HOME')",
        "1: environment variables are read in the frontend and handed down",
    ),
    ("file_size", "runtime/bad.py", DOC + "x = 1\n" * 400, "401: 401 lines, at most 400"),
    ("file_size", "runtime/good.py", DOC + "x = 1\n" * 399, ""),
    (
        "function_size",
        "runtime/bad.py",
        "\ndef f():\n" + "    x = 1\n" * 60,
        "2: f() has 61 lines, at most 60",
    ),
    (
        "module_docstring",
        "tests/bad.py",
        "# a comment\nx = 1",
        "1: the module has no docstring: say its role",
    ),
    ("module_docstring", "tests/good.py", "# a comment\n" + DOC, ""),
    ("line_length", "tests/bad.py", "\nx = '" + "y" * 96 + "'", "2: 102 characters, at most 100"),
    (
        "names_that_say_something",
        "runtime/utils.py",
        DOC,
        "1: utils.py does not say what it holds: rename it",
    ),
    (
        "names_that_say_something",
        "tests/common/x.py",
        DOC,
        "1: common does not say what it holds: rename it",
    ),
    (
        "names_that_say_something",
        "runtime/store_v2.py",
        DOC,
        "1: store_v2.py does not say what it holds: rename it",
    ),
    (
        "no_machine_paths",
        "README.md",
        "see /" + "home/ann/x",
        "1: /" + "home/a: a path of one machine",
    ),
    (
        "no_machine_paths",
        "docs/x.md",
        "\npip -i https://" + "pypi" + ".org/simple",
        "2: pypi" + ".org: a registry's host",
    ),
    ("no_machine_paths", "docs/x.md", "compiler/" + "work/x and ~/" + "opt/x", ""),
    (
        "no_sleep_in_tests",
        "tests/test_bad.py",
        "import time\ntime.sleep(1)",
        "2: a test may not sleep: wait for the event itself",
    ),
)
