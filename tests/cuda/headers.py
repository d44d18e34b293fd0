#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the declarations of runtime/cuda/driver agree with NVIDIA's headers, if these are available.

usage: headers.py --compiler CXX [--include DIR[:DIR...]]...

Every function of cublaslt.def has the parameters that the header declares for its exported name, every number of
number.def is the header's, and the structs of graph.h and library.h have the header's layout. Each --include is the
folders of one version of CUDA; by default /usr/local/cuda/include, and those of NVIDIA's Python packages.
Exit status: 0 if they agree, 1 if they differ, 77 without headers.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import sysconfig

DRIVER = pathlib.Path(__file__).resolve().parents[2] / "runtime/cuda/driver"
HEADERS = ("cuda.h", "cublasLt.h", "nvrtc.h", "nvtx3/nvToolsExt.h")

# A parameter by size and kind; pointers to structs and to void are equivalent, because they are handles.
START = """
#define __CUDA_API_VERSION_INTERNAL /* declares each version of a function under its exported name */
%s
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <type_traits>
namespace ours {
%s
}
template <class T> constexpr int kind() {
    if constexpr (std::is_pointer_v<T>) return 1000 + kind<std::remove_cv_t<std::remove_pointer_t<T>>>();
    else if constexpr (std::is_floating_point_v<T>) return 100 + (int)sizeof(T);
    else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) return (int)sizeof(T);
    else return 0;
}
template <class F, class G> struct same : std::false_type {};
template <class R, class S, class... A, class... B> struct same<R(A...), S(B...)> {
    static constexpr bool compare() {
        if constexpr (sizeof...(A) != sizeof...(B)) return false;
        else return kind<R>() == kind<S>() && ((kind<A>() == kind<B>()) && ... && true);
    }
    static constexpr bool value = compare();
};
"""
STRUCTS = (
    ("CUgraphNodeParams", "cuda_node_parameters", ("type", "reserved0", "reserved2")),
    ("CUDA_CONDITIONAL_NODE_PARAMS", "cuda_conditional_parameters",
     ("handle", "type", "size", ("phGraph_out", "graphs"), ("ctx", "context"))),
    ("CUlaunchAttribute", "cuda_launch_attribute", ("id", "value")),
    ("CUlaunchConfig", "cuda_launch_config",
     (("gridDimX", "grid"), ("blockDimX", "block"), ("sharedMemBytes", "shared_bytes"), ("hStream", "stream"),
      ("attrs", "attributes"), ("numAttrs", "attribute_count"))),
    ("cublasLtMatmulHeuristicResult_t", "lt_heuristic",
     ("algo", ("workspaceSize", "workspace"), "state", ("wavesCount", "waves"), "reserved")),
)


def plain(name):
    return re.sub(r"/\*.*?\*/", "", (DRIVER / name).read_text(), flags=re.S)


def functions():
    """Returns (exported name, result, parameters) of each row of cublaslt.def."""
    text = plain("cublaslt.def")
    for row in re.finditer(r'^CUDA_(?:SYMBOL|OPTIONAL)\(\w+,\s*\w+,\s*"(\w+)",\s*([^,(]+),\s*\(', text, re.M):
        end, depth = row.end(), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        yield row[1], row[2], text[row.end():end - 1]


def structs(name):
    """Returns the structs and typedefs of a header in this tree, without its includes and tables."""
    text = plain(name)
    kept = re.findall(r"^(?:typedef struct [^{;]*\{.*?^\} \w+;|typedef [^{]*?;|struct \w+;)", text, re.M | re.S)
    return "\n".join(one for one in kept if "CUDA_SYMBOL" not in one)


def source():
    includes = "\n".join(f"#include <{header}>" for header in HEADERS)
    lines = [START % (includes, structs("library.h") + "\n" + structs("graph.h"))]
    rows = list(functions())
    lines.append("namespace ours {")
    for name, result, parameters in rows:
        lines.append(f"typedef {result} type_of_{name}({parameters});")
    lines.append("}")
    for name, _, _ in rows:
        lines.append(f'static_assert(same<decltype(::{name}), ours::type_of_{name}>::value, "{name}");')
    numbers = re.findall(r"^CUDA_NUMBER\((\w+), (\d+), (.+)\)$", plain("number.def"), re.M)
    for name, value, constant in numbers:
        lines.append(f'static_assert((long long)({constant}) == {value}, "{name}");')
    for theirs, mine, members in STRUCTS:
        lines.append(f'static_assert(sizeof({theirs}) == sizeof(ours::{mine}), "{mine}");')
        for member in members:
            first, second = (member, member) if isinstance(member, str) else member
            lines.append(f'static_assert(offsetof({theirs}, {first}) == offsetof(ours::{mine}, {second}), "{mine}.{second}");')
    lines.append('static_assert(offsetof(CUgraphNodeParams, conditional) == offsetof(ours::cuda_node_parameters, u), "u");')
    lines.append('static_assert(sizeof CUlaunchAttributeValue().programmaticStreamSerializationAllowed == 4, "allowed");')
    return "\n".join(lines) + "\n", len(rows), len(numbers)


def found():
    wheels = pathlib.Path(sysconfig.get_path("purelib")) / "nvidia"
    folders = [["/usr/local/cuda/include"], [str(wheels / "cu13/include")],
               [str(wheels / f"{part}/include") for part in ("cuda_runtime", "cublas", "cuda_nvrtc", "nvtx")]]
    return [one for one in folders if all(any((pathlib.Path(folder) / header).exists() for folder in one) for header in HEADERS)]


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--compiler", required=True)
    args.add_argument("--include", action="append")
    a = args.parse_args()
    versions = [one.split(":") for one in a.include] if a.include else found()
    if not versions:
        print("skipped: no headers of CUDA on this machine")
        return 77
    text, rows, numbers = source()
    if rows < 70 or numbers < 20:
        print(f"only {rows} functions and {numbers} numbers are read")
        return 1
    failed = False
    for folders in versions:
        done = subprocess.run([a.compiler, "-std=c++17", "-fsyntax-only", "-w", "-x", "c++", "-",
                               *(option for folder in folders for option in ("-isystem", folder))],
                              input=text, capture_output=True, text=True)
        wrong = re.findall(r"error: (.*)", done.stderr)
        print(f"{':'.join(folders)}: {rows} functions, {numbers} numbers, {len(wrong)} faults")
        for line in wrong:
            print("FAILED", line)
        failed |= done.returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
