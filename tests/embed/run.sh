#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# HLO_PYTHON=... run.sh BUILD WORK CC CXX [FLAGS...]: installs the build into WORK/prefix, moves the folder, and uses the library as other
# projects do: with CMake's find_package, and with pkg-config.
set -eu
here=$(dirname "$(readlink -f "$0")")
build=$1 work=$2 cc=$3 cxx=$4
shift 4
rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$work/first" >"$work/install.log"
mv "$work/first" "$work/prefix"

# Completions are in the folders where shells look, and pages in those of man.
for program in hlo-fp8-opt hlo-fp8-run; do
    for file in bash-completion/completions/$program zsh/site-functions/_$program \
        fish/vendor_completions.d/$program.fish man/man1/$program.1; do
        test -s "$work/prefix/share/$file" || { echo "$file is not installed"; exit 1; }
    done
done

# The manual has a page for each reason, as --explain prints it, and every rules file.
docs=$work/prefix/share/doc/hlo-fp8
"$work/prefix/bin/hlo-fp8-opt" --explain=all | sed -n 's/^## //p' | sort >"$work/reasons"
test -s "$work/reasons"
(cd "$docs/reasons" && ls) | sed '/^README\.md$/d; s/\.md$//' | sort | diff "$work/reasons" -
while read -r reason; do
    "$work/prefix/bin/hlo-fp8-opt" --explain="$reason" | cmp - "$docs/reasons/$reason.md"
    grep -q "^- \[$reason\]($reason.md): ." "$docs/reasons/README.md" || { echo "the index lacks $reason"; exit 1; }
done <"$work/reasons"
tree=$here/../..
for page in "$tree"/docs/*.md; do test "$(wc -l <"$page")" = "$(wc -l <"$docs/${page##*/}")"; done
# Each relative link of an installed page leads to an installed file.
test ! -e "$docs/reference"
find "$docs" -name '*.md' | while read -r page; do
    sed -n 's/\](/\n](/gp' "$page" | sed -n 's/^](\([^)#]*\)[^)]*).*/\1/p' | grep -v : | while read -r link; do
        test -e "${page%/*}/$link" || { echo "$page links to $link, which is not installed" >&2; exit 1; }
        echo "$link"
    done >>"$work/links"
done
test "$(grep -c . "$work/links")" -gt 100
for page in "$tree"/passes/rules/*.rules; do cmp "$page" "$docs/rules/${page##*/}"; done

# The library that XLA loads exports only the functions of ffi.h.
ffi=$(find "$work/prefix" -name libhlofp8_ffi.so)
nm -D --defined-only "$ffi" | sed 's/.* //' | sort >"$work/exported"
sed -n 's/^struct XLA_FFI_Error \*\(\w*\)(.*/\1/p' "$work/prefix/include/hlo/ffi.h" | sort >"$work/declared"
test -s "$work/declared"
diff "$work/declared" "$work/exported"

# No release silently changes the layout of a struct or the value of an enumerator.
"$HLO_PYTHON" "$here/layout.py" "$cc" "$work/prefix/include" "$here/layout.txt"

# The libraries export the functions that the headers declare, and no release silently removes a function or an option.
archive=$(find "$work/prefix" -name libhlofp8.a)
"$HLO_PYTHON" "$here/exports.py" "$build/libhlofp8.so" "$archive" "$work/prefix/include" "$here/exports.txt"
"$HLO_PYTHON" "$here/options.py" "$build"

cmake -G Ninja -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_FLAGS="$*" -DCMAKE_CXX_FLAGS="$*" >"$work/configure.log"
cmake --build "$work/build" >"$work/build.log" || { cat "$work/build.log"; exit 1; }
"$work/build/headers"
"$work/build/cplusplus17"
"$work/build/cplusplus20"
"$work/build/embed" >"$work/cmake.out"
"$work/build/clash" "$here/../../examples/twice-negated.hlo"

# Without the libraries that the static library needs, only the component `shared` is found.
for components in "" "COMPONENTS shared"; do
    mkdir -p "$work/optional"
    cat >"$work/optional/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(optional LANGUAGES C)
find_package(hlofp8 0.1 $components)
message(STATUS "found: \${hlofp8_FOUND}")
if(hlofp8_FOUND)
  add_executable(embed "$here/embed.c")
  target_link_libraries(embed PRIVATE hlofp8::hlofp8_shared)
endif()
END
    rm -rf "$work/optional/build"
    PKG_CONFIG_LIBDIR=/nowhere cmake -G Ninja -S "$work/optional" -B "$work/optional/build" -DCMAKE_PREFIX_PATH="$work/prefix" \
        -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$*" >"$work/optional.log" 2>&1
    if [ -n "$components" ]; then
        grep -q "found: [1T]" "$work/optional.log"
        PKG_CONFIG_LIBDIR=/nowhere cmake --build "$work/optional/build" >"$work/build.log" || { cat "$work/build.log"; exit 1; }
        "$work/optional/build/embed" >/dev/null
    else
        if grep -q "found: [1T]" "$work/optional.log"; then exit 1; fi
        tr -s ' \n' ' ' <"$work/optional.log" | grep -q "needs jansson, which pkg-config does not find"
    fi
done

# Programs are linked to the shared library by a name that contains the minor release.
lib=$(dirname "$archive")
version=$(sed -n 's/^Version: //p' "$lib/pkgconfig/hlofp8.pc")
readelf -d "$work/build/embed_shared" | grep -qF "[libhlofp8.so.${version%.*}]"
test -f "$lib/libhlofp8.so.$version"
if readelf -d "$work/build/embed" | grep libhlofp8; then exit 1; fi
"$work/build/embed_shared" | cmp - "$work/cmake.out"

# Each public header compiles alone, as C99 and as C++.
for header in "$work"/prefix/include/hlo/*.h; do
    for language in "$cc -std=c99 -x c" "$cxx -std=c++11 -x c++"; do
        echo "#include <hlo/${header##*/}>" |
            $language -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$work/prefix/include" -
    done
done

# All headers together compile without warnings, with each compiler and in each version of the languages.
for header in "$work"/prefix/include/hlo/*.h; do echo "#include <hlo/${header##*/}>"; done >"$work/all.h"
for language in "$cc -std=c11 -x c" "$cc -std=c2x -x c" "$cxx -std=c++17 -x c++" "$cxx -std=c++20 -x c++" \
    "clang -std=c11 -x c" "clang -std=c2x -x c" "clang++ -std=c++17 -x c++" "clang++ -std=c++20 -x c++"; do
    command -v "${language%% *}" >/dev/null || continue
    $language -Wall -Wextra -pedantic -Wconversion -Wshadow -Werror -fsyntax-only -I"$work/prefix/include" - <"$work/all.h"
done

# Linking takes less than two seconds of CPU time, because the library contains no intermediate code.
rm "$work/build/clash"
(ulimit -t 2 && cmake --build "$work/build" >"$work/build.log") || { cat "$work/build.log"; exit 1; }

# The C++ header compiles with each compiler of the machine.
for compiler in g++ clang++; do
    command -v $compiler >/dev/null || continue
    for standard in 17 20; do
        $compiler -std=c++$standard -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$work/prefix/include" "$here/cplusplus.cc"
    done
done

# Run each example once.
examples=$here/../../examples
module=$examples/twice-negated.hlo
cmake -G Ninja -S "$examples" -B "$work/examples" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_FLAGS="$*" -DCMAKE_CXX_FLAGS="$*" -DXLA_INCLUDE="$here/pjrt" >"$work/examples.log"
cmake --build "$work/examples" >"$work/examples.log" || { cat "$work/examples.log"; exit 1; }
"$work/examples/rewrite" "$module" 2>"$work/rewritten.txt" >"$work/rewritten.hlo"
echo "d: FP8" | diff - "$work/rewritten.txt"
grep -q "f8e4m3fn.* dot(" "$work/rewritten.hlo" || grep -q "dot_any_f8_any_f8_f32" "$work/rewritten.hlo"
mkdir "$work/reference"
(cd "$work/reference" && "$work/examples/reference" "$here/../../testdata/tool/dump" >out.txt) || { grep -v ": done$" "$work/reference/out.txt" | tail; exit 1; }
for header in "$work"/prefix/include/hlo/*.h; do # the examples of pjrt.h need a plugin
    grep -q "^${header##*/}: done$" "$work/reference/out.txt" || test "${header##*/}" = pjrt.h
done
"$work/examples/explain" "$module" 2>&1 >"$work/explained.hlo" | grep "twice-negated.hlo:.*: d f32.*: FP8, epilogue DEFAULT"
grep -q 'custom_call_target="__cublas$lt$matmul$f8"' "$work/explained.hlo"
grep -q "negate(" "$work/explained.hlo"
"$work/examples/rules" "$examples/twice-negated.rules" "$module" >"$work/ruled.hlo"
grep -q 'custom_call_target="__cublas$lt$matmul$f8"' "$work/ruled.hlo"
if grep "negate(" "$work/ruled.hlo"; then exit 1; fi
"$work/examples/custom_pass" "$examples/wide.hlo" first 2>"$work/matmuls.txt" >"$work/quantized.hlo"
printf 'first: dot\nsecond: dot\n' | diff - "$work/matmuls.txt"
test "$(grep -c 'custom_call_target="__cublas$lt$matmul$f8"' "$work/quantized.hlo")" = 1
"$work/examples/custom_pass" "$examples/wide.hlo" third 2>&1 | grep "error: pass 'quantize' failed: invalid input"
for limit in 1 0.04; do
    "$work/examples/quantize" "$examples/wide.hlo" $limit 2>"$work/budget.txt" >"$work/quantized.hlo"
    fp8=$(grep -c 'custom_call_target="__cublas$lt$matmul$f8"' "$work/quantized.hlo")
    grep "^max-error $limit: $fp8 of 2 matmuls are quantized" "$work/budget.txt"
    test "$fp8" = "$([ $limit = 1 ] && echo 2 || echo 1)"
done
if "$work/examples/quantize" "$examples/wide.hlo" x 2>"$work/usage.txt"; then exit 1; fi
grep "usage: quantize FILE MAX_ERROR" "$work/usage.txt"
"$work/examples/run" "$module" "$work/out.npz" | grep "compare: 1 output agrees"
test -s "$work/out.npz"
cuda=$build/tests/cuda_standin.so
"$work/examples/train" "$examples/step.hlo" >"$work/train.out"
test "$(grep -c '^step .*: loss ' "$work/train.out")" = 5
HLO_CUDA_DRIVER=$cuda HLO_CUDA_CUBLASLT=$cuda HLO_CUDA_NVRTC=$cuda HLO_STANDIN_LOG=$work/train.log \
    "$work/examples/train" "$examples/step.hlo" cuda | diff "$work/train.out" -
test "$(grep -c ^cuMemcpyHtoDAsync "$work/train.log")" -le 8 # three inputs, and constants
test "$(grep -c ^cuMemcpyDtoHAsync "$work/train.log")" = 6 # the loss of each step, and the trial of graphs
plugin=$(cd "$here/../peer/xla" && "$HLO_PYTHON" -c 'import _xla_gpu; print(_xla_gpu.find_plugin() or "")')
if [ -n "$plugin" ] && [ -z "$*" ]; then # XLA's compiler; its leaks are not for a sanitizer
    target=$here/../peer/xla/targets/h100_sxm.txtpb
    "$work/examples/compile" "$plugin" "$target" "$module" >"$work/compiled.hlo" 2>"$work/compile.log" ||
        { cat "$work/compile.log"; exit 1; }
    grep -q 'custom_call_target="__cublas$lt$matmul$f8"' "$work/compiled.hlo"
    (cd "$work/reference" && "$work/examples/reference" "$here/../../testdata/tool/dump" "$plugin" "$target" >compiled.txt 2>compiled.log)
    grep -q 'custom_call_target="__cublas$lt$matmul$f8"' "$work/reference/compiled.txt"
fi
if [ -z "$*" ]; then # StableHLO, converted by jaxlib, rewritten, and executed by a plugin for the CPU
    cmake --install "$build" --component python --prefix "$work/site" >>"$work/install.log"
    (cd "$work" && PYTHONPATH=$work/site "$HLO_PYTHON" -m hlofp8 to-hlo "$examples/scaled.mlir" -o scaled.pb)
    plugin=$("$HLO_PYTHON" -c 'import importlib.util as u, os; f = u.find_spec("lammps_jax_pjrt_cpu"); print(os.path.join(*f.submodule_search_locations, "pjrt_c_api_cpu_plugin.so") if f else "")')
    if [ -n "$plugin" ]; then
        "$work/examples/pjrt_compile" "$plugin" "$work/scaled.pb" >"$work/pjrt.out" 2>"$work/pjrt.log" || { cat "$work/pjrt.log"; exit 1; }
        test "$(grep -c "compare: 1 output agrees" "$work/pjrt.out")" = 2 # the original and the rewritten module
        grep -q "1 of 1 matmuls in FP8" "$work/pjrt.log"
        (cd "$work/reference" && "$work/examples/reference" "$here/../../testdata/tool/dump" "$plugin" "" >out.txt)
        grep -q "^pjrt.h: done$" "$work/reference/out.txt"
    fi
    if "$work/examples/pjrt_compile" /none.so "$work/scaled.pb" 2>"$work/pjrt.log"; then exit 1; fi
    grep -q "cannot load the plugin" "$work/pjrt.log"
    if "$work/examples/pjrt_compile" 2>"$work/pjrt.log"; then exit 1; fi
    grep -q "usage: pjrt_compile PLUGIN MODULE.pb" "$work/pjrt.log"
fi
for program in explain rules custom_pass quantize run train compile; do # wrong usage, and a file that is not there
    if "$work/examples/$program" 2>/dev/null || "$work/examples/$program" a b c d 2>/dev/null; then exit 1; fi
done
"$work/examples/explain" "$work/none.hlo" 2>&1 | grep "none.hlo: error: cannot read file"

export PKG_CONFIG_PATH="$(dirname "$(find "$work/prefix" -name hlofp8.pc)")"
static=$(pkg-config --cflags --static --libs hlofp8 | sed 's/-lhlofp8/-l:libhlofp8.a/')
(eval "set -- \"\$@\" \"\$here/embed.c\" $static" && "$cc" -std=c99 "$@" -o "$work/embed_static")
"$work/embed_static" | cmp - "$work/cmake.out"
eval "set -- \"\$@\" \"\$here/embed.c\" $(pkg-config --cflags --libs hlofp8)" # spaces in paths are escaped
"$cc" -std=c99 -Wall -Wextra -Wpedantic -Werror "$@" -o "$work/embed"
readelf -d "$work/embed" | grep -qF "[libhlofp8.so.${version%.*}]"
LD_LIBRARY_PATH=$lib "$work/embed" >"$work/pkgconfig.out"

cmp "$work/cmake.out" "$work/pkgconfig.out"
diff -u "$here/expected.txt" "$work/cmake.out"
