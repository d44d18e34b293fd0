# SPDX-License-Identifier: Apache-2.0
# Runs lit in this interpreter, since `python -m lit` does not work.
from lit.main import main

main()
