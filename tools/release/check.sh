#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check.sh FOLDER [SUITE...]: installs the files of a release in new systems, as README.md says, and uses them.
# Needs root and debootstrap. Reports a suite that debootstrap cannot install as not checked; only Debian's is required.
set -eu
out=$(readlink -f "$1")
shift
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
version=$(sed -n 's/^project(hlo-fp8 VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
work=$PWD/build/release-work

# The code blocks of README.md: the Python code with its line numbers, the commands of the quick start, what both print,
# and the commands that install.
rm -rf "$work/blocks"
mkdir -p "$work/blocks"
PYTHONPATH=tests python3 - "$work/blocks" <<'END'
import pathlib
import sys
import blocks

folder, page = pathlib.Path(sys.argv[1]), pathlib.Path("README.md").read_text()
made = {}
for block in blocks.read("README.md", page)[0]:
    if not block.output:
        name = {"python": "README.md", "sh": "quick.sh"}.get(block.language, "install" if "release --check" in block.shown else "rest")
        made.setdefault(name, "\n" * (block.line - 1) if name == "README.md" else "")
    made[name + ".out"] = made.get(name + ".out", "") + (block.code if block.output else "")
    made[name] += "" if block.output else block.code
for number, line in enumerate(made["install"].splitlines()):
    made[("venv.sh", "programs.sh", "development.sh")[number]] = line + "\n"
made["readme.py"] = 'exec(compile(open("README.md").read(), "README.md", "exec"))\n'  # prints relative names
for name, text in made.items():
    (folder / name).write_text(text)
END

inside() { # COMMAND: the mounts disappear with the last process
    unshare --mount --pid --fork --root="$system" --mount-proc env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive JAX_PLATFORMS=cpu ${PIP_CERT:+PIP_CERT=/pip.crt} bash -euo pipefail -c "sudo() { \"\$@\"; }; cd /root; $1"
}

# Installs the suite, and copies what a user has: the files of the release, and the unpacked source archive.
install_system() { # SUITE MIRROR COMPONENTS SCRIPT
    if grep -q " $system" /proc/mounts; then echo "$system has mounts" && return 1; fi
    rm -rf "$system"
    debootstrap --variant=minbase --components="$3" "$1" "$system" "$2" "/usr/share/debootstrap/scripts/$4" &&
        cp /etc/hosts /etc/resolv.conf "$system/etc/" &&
        { [ -z "${PIP_CERT-}" ] || cp "$PIP_CERT" "$system/pip.crt"; } &&
        cp "$out"/* "$work"/blocks/* "$system/root/" &&
        tar -C "$system/root" -xf "$out/hlo-fp8-$version.tar.xz" --strip-components=1 --skip-old-files &&
        inside 'apt-get -q update'
}

use() { # SUITE
    inside 'apt-get install -y -q --no-install-recommends python3-venv
        . ./venv.sh
        venv/bin/python readme.py >found || { cat found; exit 1; }
        head -n 1 README.md.out | diff - <(head -n 1 found)
        diff README.md.out found || echo "other figures, with another version of JAX"
        PATH=$PWD/venv/bin:$PATH bash -eu quick.sh 2>&1 | diff quick.sh.out -' &&
        echo "checked: $1: wheel" &&
        inside '. ./programs.sh
        bash -eu quick.sh 2>&1 | diff quick.sh.out -
        test -s /usr/share/man/man1/hlo-fp8-opt.1.gz' &&
        echo "checked: $1: hlofp8" &&
        inside '. ./development.sh
        apt-get install -y -q --no-install-recommends gcc libc6-dev cmake make pkg-config
        cmake -S examples -B find_package
        cmake --build find_package
        find_package/run examples/twice-negated.hlo out.npz | grep "compare: 1 output agrees"
        cc -std=c99 -o embed tests/embed/embed.c $(pkg-config --cflags --libs hlofp8)
        ./embed | diff tests/embed/expected.txt -' &&
        echo "checked: $1: libhlofp8-dev" || return 1
    [ "$1" != jammy ] || return 0 # it has GCC 11 and CMake 3.22
    inside 'apt-get install -y -q --no-install-recommends ninja-build flex bison zlib1g-dev libjansson-dev libxxhash-dev \
            libzip-dev xz-utils
        mv hlo-fp8-*.tar.xz tests/embed/fetch/
        cmake -G Ninja -S tests/embed/fetch -B fetch
        cmake --build fetch
        fetch/embed | diff tests/embed/expected.txt -' &&
        echo "checked: $1: FetchContent"
}

[ $# -gt 0 ] || set -- bookworm jammy noble
status=0
for suite; do
    system=$work/$suite
    case $suite in
    jammy | noble) mirror=http://archive.ubuntu.com/ubuntu components=main,universe script=gutsy ;;
    *) mirror=http://deb.debian.org/debian components=main script=sid ;;
    esac
    if ! install_system "$suite" $mirror $components $script >"$work/$suite.log" 2>&1; then
        echo "not checked: $suite: $(tail -n 1 "$work/$suite.log")"
        [ "$suite" != bookworm ] || status=1
    elif ! use "$suite" >>"$work/$suite.log" 2>&1; then
        tail -n 20 "$work/$suite.log"
        status=1
    fi
    grep '^checked: ' "$work/$suite.log" || true
done
exit $status
