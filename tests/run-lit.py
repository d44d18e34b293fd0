# SPDX-License-Identifier: Apache-2.0
"""Runs lit in this interpreter, since `python -m lit` does not work.

usage: run-lit.py [OPTIONS OF LIT] BUILD/testdata/FOLDER

If HLO_GOLDENS_ONCE is set in the environment, a build without sanitizers runs only the tests that the sanitized build leaves
out, since `tools/dev test` runs both builds.
"""
import os
import pathlib
import re
import sys

from lit.main import main

folder = pathlib.Path(sys.argv[-1])
if "HLO_GOLDENS_ONCE" in os.environ and 'config.hlo_sanitize = ""' in (folder.parent / "lit.site.cfg.py").read_text():
    source = pathlib.Path(__file__).parents[1] / "testdata"
    left = [str(path.relative_to(source)) for path in sorted((source / folder.name).rglob("*"))
            if path.suffix in (".hlo", ".test") and re.search(rb"UNSUPPORTED:.*\bsanitized", path.read_bytes())]
    print(f"{len(left)} tests that the sanitized build leaves out:", *left)
    if not left:
        sys.exit()
    os.environ["LIT_FILTER"] = "|".join(f":: {re.escape(name)}$" for name in left)
main()
