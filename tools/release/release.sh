#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the files of a release. `tools/dev` calls this script:
#   release.sh release [--check]     the files of the committed version, in build/release-VERSION
#   release.sh wheel FOLDER [OPTIONS]  only the wheel, of this tree; OPTIONS are those of `pip wheel`
#   release.sh build FOLDER          the packages and the wheel of this tree
set -eu
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
root=$PWD
version=$(sed -n 's/^project(hlo-fp8 VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)

say() { printf '\n== %s\n' "$*"; }
die() { printf 'tools/dev: %s\n' "$*" >&2; exit 1; }

# Downloads the sources of libraries from Debian, whatever sources of packages this system has set.
download() { # FOLDER PACKAGE...
    local folder=$1 options
    shift
    mkdir -p "$folder/lists/partial"
    echo "deb-src http://deb.debian.org/debian bookworm main" >"$folder/sources.list"
    options="-q -o Dir::Etc::SourceList=$folder/sources.list -o Dir::Etc::SourceParts=- -o Dir::State::Lists=$folder/lists"
    apt-get $options update
    (cd "$folder" && apt-get $options source --download-only --tar-only "$@")
}

# Builds what makes the binaries of a release portable: the libraries that many systems lack, as archives of
# position-independent code, which Debian does not have, and without OpenSSL, which Debian's libzip needs; and
# libglibc_2_27, which static programs do not need.
portable() { # PREFIX
    local prefix=$1 made made_from
    made_from=$(sha256sum tools/release/*)
    [ "$(cat "$prefix/made-from" 2>/dev/null)" = "$made_from" ] && return
    say "building libraries in $prefix"
    rm -rf "$prefix"
    mkdir -p "$prefix/lib" "$prefix/src"
    made=$prefix/src/log
    {
        download "$prefix/src" jansson xxhash libzip
        for archive in "$prefix"/src/*.orig.tar.*; do tar -C "$prefix/src" -xf "$archive"; done
        (
            export CFLAGS="-O2 -fPIC -DNDEBUG -ffile-prefix-map=$prefix/src=."
            library() { # SOURCE [OPTIONS of cmake...]
                cmake -G Ninja -S "$1" -B "$1/build" -DCMAKE_BUILD_TYPE=None -DCMAKE_INSTALL_PREFIX="$prefix" \
                    -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF "${@:2}"
                cmake --build "$1/build" --target install
            }
            library "$prefix"/src/jansson-* -DJANSSON_{BUILD_SHARED_LIBS,BUILD_DOCS,EXAMPLES}=OFF -DJANSSON_WITHOUT_TESTS=ON
            library "$prefix"/src/xxHash-*/cmake_unofficial -DXXHASH_BUILD_XXHSUM=OFF
            library "$prefix"/src/libzip-* -DENABLE_{OPENSSL,GNUTLS,MBEDTLS,COMMONCRYPTO,BZIP2,LZMA}=OFF \
                -DBUILD_{TOOLS,REGRESS,EXAMPLES,DOC}=OFF -DHAVE_ARC4RANDOM=OFF # which glibc 2.36 has
        )
        gcc -O2 -fPIC -c -o "$prefix/lib/glibc_2_27.o" tools/release/glibc_2_27.c
        echo "INPUT($prefix/lib/glibc_2_27.o -l:libm.so.6 -l:libpthread.so.0 -l:libdl.so.2)" >"$prefix/lib/libglibc_2_27.so"
        ar rcD "$prefix/lib/libglibc_2_27.a"
        for package in libjansson-dev libxxhash-dev libzip-dev zlib1g-dev libc6; do
            printf '==== %s\n\n' "$package"
            cat "/usr/share/doc/$package/copyright"
        done >"$prefix/NOTICES"
    } >"$made" 2>&1 || { tail -n 30 "$made" >&2; die "cannot build the libraries in $prefix"; }
    echo "$made_from" >"$prefix/made-from"
}

# Sets up the compiler for binaries that are portable and do not depend on the folder of the build.
environment() {
    local prefix=$root/build/portable
    portable "$prefix"
    export CMAKE_PREFIX_PATH=$prefix PKG_CONFIG_PATH=$prefix/lib/pkgconfig CFLAGS="-ffile-prefix-map=$root=."
    export LDFLAGS="-Wl,--no-as-needed -L$prefix/lib -lglibc_2_27 -Wl,--exclude-libs,ALL"
}

wheel() { # FOLDER [OPTIONS of pip wheel...]
    local folder=$1 made=build/wheel
    shift
    environment
    rm -rf $made/raw
    if [ "$(cat $made/made-from 2>/dev/null)" != "$(sha256sum bindings/python/requirements-wheel.txt)" ]; then
        python3 -m venv $made
        $made/bin/pip install --quiet --disable-pip-version-check --require-hashes \
            -r bindings/python/requirements-wheel.txt
        sha256sum bindings/python/requirements-wheel.txt >$made/made-from
    fi
    PATH=$root/$made/bin:$PATH
    pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps -w $made/raw "$@" .
    auditwheel repair -w "$folder" $made/raw/*.whl
}

build() { # FOLDER
    environment
    cmake --preset release -DHLOFP8_BUILD_TESTS=OFF -DCMAKE_INSTALL_PREFIX=/usr -DHLO_NOTICES="$root/build/portable/NOTICES"
    cmake --build --preset release
    (cd build/release && cpack -B packages)
    mkdir -p "$1"
    mv build/release/packages/*.deb "$1"
    wheel "$1" --config-settings=build-dir=build/release
}

release() { # [--check]
    local name=hlo-fp8-$version work=$root/build/release-work out=$root/build/release-$version folder
    case ${1-} in
    '') ;;
    --check) [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || die "release --check needs root and debootstrap" ;;
    *) die "no such option: release $1" ;;
    esac
    [ -z "$(git status --porcelain)" ] || die "the tree has changes that are not committed"
    grep -q "^## $version (20[0-9-]*)$" CHANGELOG.md || die "CHANGELOG.md has no entry '## $version (DATE)'"
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
    export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8 TZ=UTC
    unset CMAKE_C_COMPILER_LAUNCHER
    umask 022
    rm -rf "$work" "$out"
    mkdir -p "$out"
    git archive --prefix="$name/" HEAD | xz -9 >"$out/$name.tar.xz"
    for folder in "$work/first" "$work/second/folder"; do
        say "building in $folder"
        mkdir -p "$folder"
        tar -C "$folder" -xf "$out/$name.tar.xz"
        "$folder/$name/tools/release/release.sh" build "$folder/files" >"$folder/log" 2>&1 ||
            { tail -n 30 "$folder/log" >&2; die "$folder/log: the build failed"; }
    done
    diff -r "$work/first/files" "$work/second/folder/files" || die "the two builds differ"
    mv "$work"/first/files/* "$out"
    (cd "$out" && sha256sum * | tee SHA256SUMS)
    ls -l "$out"
    if [ "${1-}" = --check ]; then tools/release/check.sh "$out"; fi
}

"$@"; exit
