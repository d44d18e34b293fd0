#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# package.sh BUILD WORK CC: creates the Debian package of a build, unpacks it, and builds and runs the examples with
# its contents.
set -eu
here=$(dirname "$(readlink -f "$0")")
build=$1 work=$2 cc=$3
rm -rf "$work"
mkdir -p "$work"
(cd "$build" && cpack --config CPackConfig.cmake -B "$work/made") >"$work/cpack.log" 2>&1 || { cat "$work/cpack.log"; exit 1; }
set -- "$work"/made/*.deb
test $# = 1
for needed in libjansson4 libjansson-dev libzip-dev; do
    dpkg-deb -f "$1" Depends | grep -qw -- "$needed" || { echo "$1 does not depend on $needed"; exit 1; }
done
dpkg-deb -x "$1" "$work/root"
dpkg-deb --ctrl-tarfile "$1" | tar -xO ./postinst | grep -q ldconfig
dpkg-deb --ctrl-tarfile "$1" | tar -xO ./shlibs | grep "^libhlofp8 [0-9.]* hlo-fp8 (>= "
test -n "$(find "$work/root/usr/lib" -name 'libhlofp8.so.*.*.*' -type f)"
test -z "$(find "$work/root" -name '*.py' -o -name '*.pyc')" # the Python package is a wheel
for program in hlo-fp8-opt hlo-fp8-run; do
    "$work/root/usr/bin/$program" --version | grep "^$program [0-9]"
    for file in man/man1/$program.1 bash-completion/completions/$program zsh/site-functions/_$program \
        fish/vendor_completions.d/$program.fish; do
        test -s "$work/root/usr/share/$file" || { echo "the package has no $file"; exit 1; }
    done
done
module=$here/../../examples/twice-negated.hlo
cmake -G Ninja -S "$here/../../examples" -B "$work/examples" -DCMAKE_PREFIX_PATH="$work/root/usr" \
    -DCMAKE_C_COMPILER="$cc" >"$work/examples.log"
cmake --build "$work/examples" >"$work/examples.log" || { cat "$work/examples.log"; exit 1; }
"$work/examples/run" "$module" "$work/out.npz" | grep "compare: 1 output agrees"
"$work/root/usr/bin/hlo-fp8-run" --optimize --compare="$work/out.npz" "$module" | grep "compare: 1 output agrees"
