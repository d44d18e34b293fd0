# SPDX-License-Identifier: Apache-2.0
# lit from the interpreter that runs this: `python -m lit` is not possible.
from lit.main import main

main()
