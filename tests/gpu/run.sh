#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the tests on a machine with a GPU:
#   run.sh [OPTIONS]                                          all stages; packs the results in one file
#   run.sh smoke|correct|matmul|models|profile [OPTIONS]      one stage
# Results are saved after every case, and the next call resumes. pack.py and stages.py describe the
# options. python3 is required; torch and JAX are also measured if installed.
# Exit status: 0 if all cases passed, 1 if a case failed or there is no device, 75 if cases remain.
set -eu
self=$(readlink -f "$0")
here=${self%/*}
root=$here/../..
bin=$root/bin
[ -x "$bin/hlo-fp8-run" ] || bin=$root/build/release/bin
if ! command -v python3 >/dev/null; then
    "$bin/hlo-fp8-run" --backend=cuda "$root/testdata/models/seed_relu_damax.hlo" || exit 1
    echo "run.sh: error: there is no python3" >&2
    exit 1
fi
case ${1-} in
[a-z]*) exec python3 "$here/stages.py" --bin "$bin" "$@" ;;
*) exec python3 "$here/pack.py" --bin "$bin" "$@" ;;
esac
