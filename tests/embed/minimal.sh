#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# minimal.sh WORK: builds a project that contains hlo-fp8 without its optional parts, and checks what the result needs at
# run time. Then builds the programs without most parts, and checks their errors.
set -eu
here=$(dirname "$(readlink -f "$0")")
work=$1
module=$here/../../examples/twice-negated.hlo
rm -rf "$work"
mkdir -p "$work"
build() { # FOLDER -S SOURCE [OPTIONS...]
    folder=$work/$1
    shift
    cmake -G Ninja -B "$folder" -DCMAKE_BUILD_TYPE=Debug "$@" >"$folder.log" 2>&1 || { cat "$folder.log"; exit 1; }
    cmake --build "$folder" >"$folder.log" 2>&1 || { tail -n 40 "$folder.log"; exit 1; }
}
gzip -c "$module" >"$work/module.gz"

build minimal -S "$here/minimal" -DHLOFP8_INSTALL=ON
"$work/minimal/minimal" "$module" >"$work/static.txt"
grep -x "1 FP8" "$work/static.txt"
"$work/minimal/minimal_shared" "$module" | cmp - "$work/static.txt"
for file in "$work/minimal/minimal" "$work/minimal/hlofp8/libhlofp8.so"; do
    if readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^lib(c|m|jansson|xxhash)\.so'; then
        echo "$file needs these libraries"
        exit 1
    fi
done
# The installed headers declare exactly the functions that the library has.
cmake --install "$work/minimal" --component development --prefix "$work/minimal/prefix" >"$work/install.log"
"${HLO_PYTHON:-python3}" "$here/exports.py" "$work/minimal/hlofp8/libhlofp8.so" "$work/minimal/hlofp8/libhlofp8.a" \
    "$work/minimal/prefix/include"
if "$work/minimal/minimal" "$work/module.gz" 2>"$work/gzip.txt"; then exit 1; fi
grep "module.gz: error: cannot read file: this build has no zlib" "$work/gzip.txt"

build programs -S "$here/../.." -DHLOFP8_BUILD_TESTS=OFF -DHLOFP8_WITH_ZLIB=OFF -DHLOFP8_WITH_NPZ=OFF \
    -DHLOFP8_WITH_CUDA=OFF -DHLOFP8_WITH_FFI=OFF -DHLOFP8_WITH_PJRT=OFF
run=$work/programs/bin/hlo-fp8-run
"$run" --optimize --compare=before "$module" | grep "compare: 1 output agrees"
for option in --inputs=x.npz=npz --outputs=x.npz=npz --backend=cuda=cuda --backend=pjrt:x.so=pjrt; do
    if "$run" "${option%=*}" "$module" 2>"$work/part.txt"; then exit 1; fi
    grep "this build has no ${option##*=}" "$work/part.txt"
done
cmake --install "$work/programs" --prefix "$work/programs/prefix" >"$work/install.log"
"${HLO_PYTHON:-python3}" "$here/exports.py" "$work/programs/libhlofp8.so" "$work/programs/libhlofp8.a" \
    "$work/programs/prefix/include"
