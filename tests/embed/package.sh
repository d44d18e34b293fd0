#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# package.sh BUILD WORK CC: creates the Debian packages of a build, unpacks them, and builds and runs the examples with
# their contents. Uses the tree as a part of another CMake project.
set -eu
here=$(dirname "$(readlink -f "$0")")
build=$1 work=$2 cc=$3
rm -rf "$work"
mkdir -p "$work"
(cd "$build" && cpack --config CPackConfig.cmake -B "$work/made") >"$work/cpack.log" 2>&1 || { cat "$work/cpack.log"; exit 1; }
package() { # NAME DEPENDENCY...
    name=$1
    deb=$(ls "$work/made/${name}"_*.deb)
    shift
    for needed; do
        dpkg-deb -f "$deb" Depends | grep -qw -- "$needed" || { echo "$deb does not depend on $needed"; exit 1; }
    done
    dpkg-deb -x "$deb" "$work/$name"
    dpkg-deb -x "$deb" "$work/root"
    for file in copyright changelog.Debian.gz; do test -s "$work/$name/usr/share/doc/$name/$file"; done
}
library=libhlofp8-$(readelf -d "$build/libhlofp8.so" | sed -n 's/.*\[libhlofp8\.so\.\(.*\)\]/\1/p')
package hlofp8 libc6 libjansson4
package "$library" libc6 libjansson4
package libhlofp8-dev "$library" libjansson-dev libzip-dev
test "$(ls "$work/made" | grep -c 'deb$')" = 3
deb=$(ls "$work/made/${library}"_*.deb)
dpkg-deb --ctrl-tarfile "$deb" | tar -xO ./postinst | grep -q ldconfig
dpkg-deb --ctrl-tarfile "$deb" | tar -xO ./shlibs | grep "^libhlofp8 [0-9.]* $library (>= "
test -n "$(find "$work/$library/usr/lib" -name 'libhlofp8.so.*.*.*' -type f)"
test -n "$(find "$work/libhlofp8-dev/usr/lib" -name libhlofp8.a)"
test -z "$(find "$work/root" -name '*.py' -o -name '*.pyc')" # the Python package is a wheel
for program in hlo-fp8-opt hlo-fp8-run; do
    "$work/hlofp8/usr/bin/$program" --version | grep "^$program [0-9]"
    for file in man/man1/$program.1.gz bash-completion/completions/$program zsh/site-functions/_$program \
        fish/vendor_completions.d/$program.fish; do
        test -s "$work/hlofp8/usr/share/$file" || { echo "the package has no $file"; exit 1; }
    done
done
module=$here/../../examples/twice-negated.hlo
cmake -G Ninja -S "$here/../../examples" -B "$work/examples" -DCMAKE_PREFIX_PATH="$work/root/usr" \
    -DCMAKE_C_COMPILER="$cc" >"$work/examples.log"
cmake --build "$work/examples" >"$work/examples.log" || { cat "$work/examples.log"; exit 1; }
"$work/examples/run" "$module" "$work/out.npz" | grep "compare: 1 output agrees"
"$work/root/usr/bin/hlo-fp8-run" --optimize --compare="$work/out.npz" "$module" | grep "compare: 1 output agrees"

# `tools/dev release --check` builds all of it, which takes minutes.
cmake -G Ninja -S "$here/fetch" -B "$work/fetch" -DFETCHCONTENT_SOURCE_DIR_HLOFP8="$here/../.." \
    -DCMAKE_C_COMPILER="$cc" >"$work/fetch.log" 2>&1 || { cat "$work/fetch.log"; exit 1; }
cmake --build "$work/fetch" --target hlo_ir_infer >"$work/fetch.log" || { cat "$work/fetch.log"; exit 1; }
