# SPDX-License-Identifier: Apache-2.0
"""Checks generated kernels as compiled by NVRTC against their source: the width of each load and store.

The expectation is derived from the kernel's text. A thread loads and stores packs of elements, of 16 bytes or more.
A pack may be narrower only if a wider array has packs of two accesses, or if a tile fills the registers for it.
Single elements are loaded or stored only if a row, a column or a block has one of them.
"""
import collections
import dataclasses
import os
import re
import shutil

from _standin import run

ACCESS, MAX_PACK, HELD = 16, 32, 256  # bytes: EMIT_ACCESS of emit.h, twice EMIT_ACCESS, HELD of tile.c
IN_FLIGHT = 2
BYTES = {"uchar": 1, "signed char": 1, "ushort": 2, "short": 2, "int": 4, "uint": 4, "float": 4, "int64": 8,
         "uint64": 8, "double": 8}
KERNEL = re.compile(r'^extern "C" __global__ void \S+ (\w+)\((.*?)\) \{\n(.*?)^\}', re.M | re.S)
PARAMETER = re.compile(r"(?:const )?((?:signed )?\w+) \*(?:__restrict__ )?(\w+)")
COUNTED = re.compile(r"^for \(int (\w+) = 0; \1 < (\d+); \1\+\+\)")
PACK = re.compile(r"\*\((?:const )?pack<([\w ]+), (\d+)> \*\)\([pq]\d")
HELD_PACKS = re.compile(r"^pack<([\w ]+), (\d+)> \w+\[(\d+)\];")
LOCAL = re.compile(r"^(?:SPILL\.)?(?:LDL|STL)")
REDUCING = re.compile(r"\bop_(?:sine|cosine|tan)\(")  # their reduction of large arguments uses local memory and f64
ELEMENT = re.compile(r"\b([pqt]\d+)\[")


@dataclasses.dataclass
class Access:
    store: bool
    bytes: int
    times: int  # number of executions, in unrolled loops
    pack: bool
    each: bool  # true if it runs for every element of a thread


def accesses(parameters, body):
    """Returns the loads and stores of a kernel's text, and the bytes of the largest array of packs per thread."""
    types = {name: BYTES[kind] for kind, name in PARAMETER.findall(parameters)}
    found, blocks, held = [], [], 0
    for line in map(str.strip, body.splitlines()):
        counted = COUNTED.match(line)
        blocks = blocks[:-1] if line.startswith("}") else blocks
        around = blocks + ([(counted[1], int(counted[2]))] if counted else [])
        if line.endswith("{"):
            blocks.append((counted[1], int(counted[2])) if counted else (line.split("(")[0].strip(), 1))
            continue
        times = 1
        for _, turns in around:
            times *= turns
        names = [name for name, _ in around]
        each = "u" in names and not any(name.startswith(("if", "else")) for name in names)
        array = HELD_PACKS.match(line)
        if array:
            held = max(held, BYTES[array[1]] * int(array[2]) * int(array[3]))
        for pack in PACK.finditer(line):
            found.append(Access(line.startswith("*("), BYTES[pack[1]] * int(pack[2]), times, True, False))
        for element in ELEMENT.finditer(line):
            found.append(Access(element.start() == 0, types[element[1]], times, False, each))
    return found, held


def sass_of(a, path):
    """Returns the instructions of each kernel, as NVRTC compiles the model's program: words and register numbers, the
    first of which is written. The fake cannot load the program, so the run fails there; the program is in the cache."""
    cache = a.work / "sass"
    shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir(parents=True)
    environment = dict(os.environ, HLO_CUDA_DRIVER=a.standin, HLO_CUDA_CUBLASLT=a.standin)
    said = run([a.bin / "hlo-fp8-run", "--backend=cuda", "--optimize", f"--kernel-cache={cache}", path], environment)[2]
    cubins = list(cache.glob("*.cubin"))
    if not cubins:
        return {}, said
    kernels, kernel = {}, []
    for line in run([a.sass, cubins[0]])[1].splitlines():
        named = re.match(r"\.text\.(\S+):", line)
        found = re.search(r"\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9_.]+)\s*(.*?);", line)
        if named:
            kernel = kernels.setdefault(named[1], [])
        elif line.startswith(".L_"):
            kernel.append(("LABEL", []))
        elif found:
            spills = "SPILL." * ("SpillRefill" in line)
            kernel.append((spills + found[1], [int(number) for number in re.findall(r"\bR(\d+)", found[2])]))
    return kernels, said


def width_of(word):
    """Returns the bytes of a load or a store of global memory."""
    return next((size for size, suffix in ((16, "128"), (8, "64"), (1, "U8"), (1, "S8"), (2, "U16"), (2, "S16"))
                 if f".{suffix}" in word), 4)


def loads_in_flight(kernel):
    """Returns the maximum number of loads of packs in one basic block that have started before an instruction needs
    any of them."""
    most, waiting = 0, []
    for word, registers in kernel:
        if word == "LABEL" or word.startswith(("BRA", "CALL", "BSYNC", "RET", "BAR")):
            waiting = []
            continue
        waiting = [load for load in waiting if not load & set(registers)]
        if word.startswith("LDG") and width_of(word) >= 8:
            waiting.append(set(range(registers[0], registers[0] + width_of(word) // 4)))
            most = max(most, len(waiting))
    return most


def waits(kernel):
    """Returns whether the kernel waits for other kernels before it accesses memory."""
    words = [word for word, _ in kernel if re.match(r"ACQBULK|LDG|LD\.|STG|ST\.|ATOM|RED", word)]
    return bool(words) and words[0] == "ACQBULK"


def faults_of_text(found, held):
    faults = []
    packs = [access.bytes for access in found if access.pack]
    if not packs:
        faults.append("has no packs")
    if packs and min(packs) < ACCESS and max(packs) < MAX_PACK and held < HELD:
        faults.append(f"has packs of {min(packs)} bytes, and none of {MAX_PACK}, nor {HELD} bytes of them")
    one_by_one = [access for access in found if access.each and not access.pack]
    if one_by_one:
        faults.append(f"has {len(one_by_one)} loads or stores of single elements")
    return faults


def faults_of_code(found, kernel):
    """Returns differences between the compiled kernel's loads and stores and those in its text."""
    faults = []
    for word, store in (("LDG", False), ("STG", True)):
        have = collections.Counter(width_of(w) for w, _ in kernel if w.startswith(word))
        want = collections.Counter()
        for access in found:
            if access.store == store:
                want[min(access.bytes, ACCESS)] += access.times * max(access.bytes // ACCESS, 1)
        if have[ACCESS] < want[ACCESS]:
            faults.append(f"{word}.128 occurs {have[ACCESS]} times, not {want[ACCESS]}")
        faults += [f"{word} of {size} bytes occurs {count} times, not {want[size]}"
                   for size, count in have.items() if size < ACCESS and count > want[size]]
    if any(LOCAL.search(word) for word, _ in kernel):
        faults.append("has values in local memory")
    if any(word.startswith("LDG") for word, _ in kernel) and loads_in_flight(kernel) < IN_FLIGHT:
        faults.append(f"has {loads_in_flight(kernel)} loads at once")
    return faults


def faults_of(text, kernel):
    found, held = accesses(*text)
    return faults_of_text(found, held) + faults_of_code(found, kernel)


def unseen(text, kernel):
    """Returns the faults that are inserted into a kernel and not found."""
    parameters, body = text
    array = PARAMETER.search(parameters)[2]
    narrow = re.sub(r"pack<([\w ]+), (\d+)>", lambda pack: f"pack<{pack[1]}, {max(int(pack[2]) // 8, 1)}>", body)
    waiting = [step for word, registers in kernel
               for step in [(word, registers)] + [("MOV", registers)] * word.startswith("LDG")]
    given = {
        "narrower packs": ((parameters, narrow), kernel),
        "single elements": ((parameters, body + f"for (int u = 0; u < 8; u++) {{\n  x = {array}[u];\n}}\n"), kernel),
        "narrower instructions": (text, [(word.replace(".128", ".64"), registers) for word, registers in kernel]),
        "waiting for each load": (text, waiting),
        "local memory": (text, kernel + [("STL", [0])]),
    }
    if waiting == kernel:  # the kernel loads nothing
        del given["waiting for each load"]
    return [f"given {name}, is found to have no fault" for name, (t, k) in given.items() if not faults_of(t, k)]


def check(plan, kernels, heaviest):
    """Returns the faults of a plan's kernels, compiled to `kernels`: of all kernels, and of the heaviest ones."""
    texts = {name: (parameters, body) for name, parameters, body in KERNEL.findall(plan)}
    plain = {name: {word for word, _ in kernel} for name, kernel in kernels.items()
             if not REDUCING.search("".join(texts.get(name, "")))}
    slow = [name for name, words in plain.items() if any(word.startswith("F2F.") for word in words)]
    faults = [f"F2F in {', '.join(slow)}"] if slow or not plain else []
    faults += [f"{name} has an array in local memory" for name, words in plain.items()
               if any(word.startswith(("LDL", "STL")) for word in words)]
    faults += [f"{name} accesses memory before it waits" for name, kernel in kernels.items() if not waits(kernel)]
    for name, size in heaviest:
        words = collections.Counter(word for word, _ in kernels[name] if word.startswith(("LDG", "STG")))
        print(f"  {name}: {size / 1e6:.0f} MB, {len(kernels[name])} instructions, {loads_in_flight(kernels[name])} loads at "
              f"once, {dict(words)}")
        found = faults_of(texts[name], kernels[name]) or unseen(texts[name], kernels[name])
        faults += [f"{name} {fault}" for fault in found]
    return faults
