# SPDX-License-Identifier: Apache-2.0
# Runs lit in this interpreter: `python -m lit` does not work.
from lit.main import main

main()
