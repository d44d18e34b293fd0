#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs one stage of what there is to see on a machine with a GPU, within its minutes:
#   lease.sh smoke|correct|matmul|models|profile [OPTIONS]
# Results are kept after every case; called again, it resumes. stages.py says what each stage does,
# and has the options. It needs python3; torch and JAX are also measured if installed.
# Exit status: 0 all is done and well, 1 a case failed or there is no device, 75 not done yet.
set -eu
self=$(readlink -f "$0")
here=${self%/*}
root=$here/../..
bin=$root/bin
[ -x "$bin/hlo-fp8-run" ] || bin=$root/build/release/bin
if ! command -v python3 >/dev/null; then
    "$bin/hlo-fp8-run" --backend=cuda "$root/testdata/models/seed_relu_damax.hlo" || exit 1
    echo "lease.sh: error: there is no python3" >&2
    exit 1
fi
exec python3 "$here/stages.py" --bin "$bin" "$@"
