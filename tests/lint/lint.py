#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks of the tree itself, each a ctest test lint/NAME.

usage: lint.py NAME [--check|--write] [--root=DIR]

Prints `file:line: what is wrong` for each finding; exit status 1 if there are any. The NAMEs are the functions of
the table at the end. The docstring of a function says what the check rejects. `format` without --check, and `spdx`
with --write, change the files instead.
"""
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from blocks import faults, of

ROOT = pathlib.Path(next((a[7:] for a in sys.argv if a.startswith("--root=")), pathlib.Path(__file__).parents[2])).resolve()
LIBRARY = ("ir", "grammar", "matmul", "passes", "report", "runtime")
MODELS = "testdata/models/", "testdata/programs/", "testdata/unquantized/", "testdata/versions/"
UNGUARDED = {"tests/cuda/shim.h", "tests/mutate/mutant.h"}  # the headers that kernels and mutants are compiled with


def tracked():
    """Returns the paths of the tree's files relative to the root: the files in git, or without git all outside
    build/."""
    try:
        git = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(git, check=True, capture_output=True, text=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*")]
        names = [n for n in names if not n.startswith(("build/", ".git/"))]
    return sorted(n for n in names if n and (ROOT / n).is_file())


FILES = tracked()


def read(name):
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


def lines(name):
    return enumerate(read(name).split("\n"), 1)


def sources(*suffixes, rooms=None):
    for name in FILES:
        if name.endswith(suffixes) and (rooms is None or name.split("/")[0] in rooms):
            yield name


# Text that resembles a directive of lit or FileCheck, and likely misspellings of directives.
SUSPECT = re.compile(r"^\s*//\s*([A-Za-z][A-Za-z0-9_-]*(?:\{[A-Z]+\})?)\s*:")
NEAR = re.compile(r"^(C[HEKC]{2,5}|RUN|RNU|RUM|XFAIL|[A-Z0-9]+[-_](NEXT|SAME|NOT|DAG|LABEL|EMPTY|COUNT).*)", re.I)
LIT = {"RUN", "REQUIRES", "UNSUPPORTED", "XFAIL", "DEFINE", "REDEFINE"}
SUFFIX = re.compile(r"-(NEXT|SAME|NOT|DAG|LABEL|EMPTY|COUNT-[0-9]+)$")


def directives():
    """Rejects golden tests with misspelled or unused FileCheck directives, with checks that no RUN line reads, or
    without RUN lines or checks."""
    for name in FILES:
        if not name.startswith("testdata/") or name.startswith(MODELS) or not name.endswith((".hlo", ".test")):
            continue
        text = read(name)
        # A line that ends in a backslash continues in the next RUN line.
        runs = "\n".join(re.findall(r"//\s*RUN:(.*)", text)).replace("\\\n", " ")
        if not runs:
            yield name, 1, "no RUN line: lit would not run it"
            continue
        prefixes = set()
        for call in re.findall(r"FileCheck\b[^|;&\n]*", runs):
            if "%s" not in call:
                continue
            given = re.findall(r"--?check-prefix(?:es)?[= ]([\w,-]+)", call)
            prefixes.update(",".join(given).split(",") if given else ["CHECK"])
        used = set()
        for number, line in lines(name):
            found = SUSPECT.match(line)
            if not found:
                if re.match(r"^\s*//\s*(CHECK|RUN)\b", line) and not re.match(r"^\s*//\s*(CHECK|RUN)[\w-]*:", line):
                    yield name, number, "a directive without its colon?"
                continue
            word = found.group(1).replace("{LITERAL}", "")
            base = SUFFIX.sub("", word)
            if word in LIT or base == "COM":
                continue
            if base in prefixes:
                if not re.match(r"^\s*//\s*[\w{}-]+:", line):
                    yield name, number, f"{word} has a space before its colon: FileCheck does not see it"
                used.add(base)
            elif NEAR.match(word) or (word.isupper() and len(word) > 3):
                yield name, number, f"{word}: no RUN line has FileCheck look for {base}"
        for prefix in sorted(prefixes - used):
            yield name, 1, f"FileCheck is to look for {prefix}, and there is no {prefix} line"
        stem = name.rsplit("/", 1)[1]
        if not prefixes and not re.search(r"%status|\bnot |diff |cmp |%golden |test |--compare|--expect-fp8|grep ", runs):
            yield name, 1, "nothing checks what the RUN lines print"
        if stem.startswith("bad-") and not re.search(r"%status [1-9]|\bnot ", runs):
            yield name, 1, "a bad-* test whose RUN lines do not demand a refusal"


def size():
    """Rejects files of more than 1000 lines, and a top README.md of more than 130; tables, grammars and models may be
    longer."""
    for name in FILES:
        if name.startswith(MODELS) or name.endswith((".def", ".l", ".y")) or name == "LICENSE":
            continue
        count, most = read(name).count("\n"), 130 if name == "README.md" else 1000
        if count > most:
            yield name, most, f"{count} lines, more than {most}"


def functions():
    """Rejects C functions of more than 70 lines, except dispatches over a table's rows (one switch, most lines are
    cases)."""
    for name in sources(".c", ".h"):
        start = None
        body = list(lines(name))
        for number, line in body:
            if start is None and line.rstrip().endswith("{") and not line.startswith((" ", "\t", "#", "}")):
                start = number if re.search(r"\)\s*\{$", line) else None
            elif start is None and line == "{":
                start = number
            elif line.startswith("}") and start is not None:
                inside = [text for _, text in body[start:number]]
                cases = sum(bool(re.match(r"\s*(case |default:|HLO_\w+\(|X\()", text)) for text in inside)
                if number - start > 70 and cases * 3 < number - start:
                    yield name, start, f"a function of {number - start} lines"
                start = None


def headings():
    """Rejects section headings (a rule of dashes and a name) that are not one line of 100 columns."""
    for name in sources(".c", ".h", ".y", ".l", ".cuh"):
        for number, line in lines(name):
            if re.match(r"/\* -{10,}", line) and not (len(line) == 100 and re.search(r"- \S.* \*/$", line)):
                yield name, number, "a heading is one line, 100 columns wide"


def guards():
    """Rejects headers whose include guard is not their path: HLO_IR_TEXT_FILE_H of ir/text/file.h, HLO_PASS_H of
    include/hlo/pass.h."""
    for name in sources(".h"):
        guard = "HLO_" + re.sub(r"\W", "_", name.removeprefix("include/hlo/")).upper()
        found = re.search(r"^#ifndef (\w+)\n#define (\w+)$", read(name), re.M)
        if name not in UNGUARDED and (not found or {*found.groups()} != {guard}):
            yield name, 1, f"the include guard is {found[1] if found else 'missing'}, expected {guard}"


def comments():
    """Rejects comments in the library and the programs that begin with a pronoun or question word."""
    vague = re.compile(r"/\*\s*(Whether|What|How (many|much|far|often)|Where|Those|Its|The same|One that|So many|Of what|Not 0|Past)\b")
    for name in sources(".c", ".h", ".y", ".l", ".cuh", rooms=(*LIBRARY, "include", "tools")):
        for number, line in lines(name):
            found = vague.search(line)
            if found:
                yield name, number, f"a comment that begins with {found[1]!r}: a verb first, and the object named"


def words():
    """Rejects markers of unfinished work, and paths of a developer's machine."""
    marker = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|not (yet )?implemented|\bunimplemented\b|\bscaffolding\b", re.I)
    path = re.compile(r"(?<![\w.%}])/(work|home|root|Users|opt/venv)/|\.\./shared/")
    for name in FILES:
        if name.startswith((*MODELS, "tests/lint/")) or name == "LICENSE":
            continue
        for number, line in lines(name):
            for pattern in (marker, path):
                found = pattern.search(line)
                if found:
                    yield name, number, f"says {found.group(0)!r}"


# The files whose text must be plain English, as patterns of fnmatch.
PLAIN = ("*.md", "docs/*", "examples/*", "cmake/*", ".ci/*", "include/*", "tools/*", "ir/*", "passes/*", "matmul/*", "report/*", "runtime/*", "bindings/*", "grammar/*", "tests/[!g]*", "testdata/*.hlo", "testdata/*.test", "testdata/*.rules", "testdata/*.py")
PROSE = {**dict.fromkeys((".c", ".h", ".cc", ".cuh", ".def", ".y", ".l"), re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)),
         ".py": re.compile(r"""\"{3}.*?\"{3}|'{3}.*?'{3}|\#[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S),
         ".hlo": re.compile(r"^ *// (?![\w-]+:).*", re.M), ".test": re.compile(r"^(?! *// ?[\w-]+:).+", re.M), ".rules": re.compile(r"^#.*", re.M)}
ODD = re.compile(r"\b(is none|(?<![Tt]here )are none|(?<![Tt]here )(?:is|are) no (?!longer\b|\w+er\b)|(?<!-)(?i:behind(?!-)|beside(?! {3}|\))|told|(?<![.>])lent|mend(s|ed|ing)?)|tells of|of one's own|has not (?:its|an?|the|all|any)\b|in vain|"
                 r"as it is|so no longer|handed on|hands? (?:it |them )?on|go(?:es)? on|as \w+ (?:has|have) it|(?:is|are) to be|whom|whoever)\b")
BRITISH = re.compile(r"\b\w*(?:(?:quant|optim|normal|serial|initial|recogn|organ|minim|maxim|general|special|synchron|summar|util|material|parallel|canonical|token|emphas|author|"
                     r"custom|stabil|vector|linear|random|real|item|memo|equal)is(?:e|ed|er|es|ing|ations?)\b|(?:col|neighb|behavi|fav|lab|hon)our|analys(?:e|ed|ing)\b|"
                     r"artefact|licence|defence|judgement|(?:modell|labell|signall|cancell|travell)(?:ed|ing)\b|fulfil\b|whilst|amongst|centre|fibre|\bgrey\b|catalogue)\w*", re.I)


def prose(name):
    """Returns the lines of a file; for a program without its code, so that only comments and strings remain."""
    text, found = read(name), PROSE.get(pathlib.PurePath(name).suffix)
    if found:
        end, kept = 0, []
        for m in found.finditer(text):
            kept += re.sub(r"[^\n]", " ", text[end : m.start()]), re.sub(r"\{\w+[^{}\n]*\}", "", m[0])
            end = m.end()
        text = "".join(kept)
    return enumerate(text.split("\n"), 1)


def language():
    """Rejects phrases that are not plain English in comments, strings and pages, and British spelling anywhere, in the
    files of PLAIN."""
    for name in FILES:
        if name.startswith((*MODELS, "tests/lint/")) or not any(fnmatch.fnmatch(name, p) for p in PLAIN):
            continue
        for text, pattern in (prose(name), ODD), (prose(name) if name.startswith("testdata/") else lines(name), BRITISH):
            for number, line in text:
                if found := pattern.search(line):
                    yield name, number, f"says {found[0]!r}"


LICENSE = "SPDX-License-Identifier: Apache-2.0"
NOTICE = {**dict.fromkeys((".c", ".h", ".cc", ".cuh", ".def", ".y", ".l", ".css", ".js"), f"/* {LICENSE} */\n"), **dict.fromkeys((".proto", ".test"), f"// {LICENSE}\n"),
          **dict.fromkeys((".py", ".sh", ".cmake", ".rules", ".toml", "CMakeLists.txt", "tools/dev", ".ci/run"), f"# {LICENSE}\n")}


def spdx():
    """Rejects source files without an SPDX line: the first, after #!, or in testdata, whose tests count lines, the
    last. --write adds it."""
    for name in sources(*NOTICE):
        notice = next(line for suffix, line in NOTICE.items() if name.endswith(suffix))
        text = read(name)
        shebang = re.match(r"(#!.*\n)?", text)[0]
        golden = name.startswith("testdata/")
        if text.endswith("\n" + notice) if golden else text.startswith(shebang + notice):
            continue
        if "--write" in sys.argv:
            (ROOT / name).write_text(text + notice if golden else shebang + notice + text[len(shebang):], encoding="utf-8")
        else:
            yield name, 1, "no SPDX line: lint.py spdx --write adds it"


def products():
    """Rejects build products, generated sources, files of editors and systems, and files that are not UTF-8 text."""
    litter = re.compile(r"(\.(o|a|so|pyc|swp|orig|rej|log|npz)|~)$|(^|/)(build|__pycache__)/|\.(tab|yy|lex)\.[ch]$")
    for name in FILES:
        data = (ROOT / name).read_bytes()
        if litter.search(name):
            yield name, 1, "a product, not a source"
        elif b"\0" in data and not name.endswith(".tar.xz"):
            yield name, 1, "not text"
        elif name.startswith(MODELS):
            continue
        elif data and not data.endswith(b"\n"):
            yield name, data.count(b"\n") + 1, "no newline at the end"
        elif b"\r" in data or (b"\t" in data and name.endswith((".c", ".h", ".def", ".py", ".md"))):
            yield name, 1, "has tabs or carriage returns"


def readme():
    """Rejects files that the nearest README.md above them does not name, and names, paths and links in pages whose
    file, heading or package does not exist."""
    readmes = {str(pathlib.PurePath(n).parent): n for n in FILES if n.endswith("README.md")}
    names = {}
    for folder, name in readmes.items():
        names[folder] = set()
        for number, line in lines(name):
            names[folder].update(re.findall(r"\]\(([^)#\s]+)", line))
            for quoted in re.findall(r"`([^`\s]+)`", line):
                pattern = re.sub(r"<\w+>|\b[A-Z]{2,}\b(?=\.)|\bNN\b", "*", quoted).rstrip("/")
                names[folder].add(pattern)
                if folder != "." and re.fullmatch(r"[\w./-]+\.(c|h|def|l|y|md|py|rules)", pattern):
                    if f"{folder}/{pattern}" not in FILES and pattern not in FILES:
                        yield name, number, f"there is no {quoted}"
    for name in sources(".md", rooms=("docs", "README.md")):
        for number, line in lines(name):
            for quoted in re.findall(r"`((?:\w+/)+[\w.-]+\.(?:c|h|def|l|y|md|py|rules|test|hlo))`", line):
                if not re.search(r"[A-Z]{2,}\.|NN", quoted) and quoted not in FILES and not quoted.startswith("build/"):
                    yield name, number, f"there is no {quoted}"
    for name in sources(".md"):
        for number, line in lines(name):
            for link in re.findall(r"\]\((?!https?:)([^)\s]*)\)", line):
                path, _, anchor = link.partition("#")
                there = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
                if there not in FILES:
                    yield name, number, f"the link {link} leads to no file"
                elif anchor and anchor not in (re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", read(there), re.M)):
                    yield name, number, f"the link {link} leads to no heading"
    if "tools/dev" in FILES and "docs/building.md" in FILES:
        for package in re.findall(r"apt-get install -y ((?:[\w.+-]+|\\\n|\s)+)\n", read("docs/building.md")):
            for word in package.replace("\\", "").split():
                if f":{word}" not in read("tools/dev"):
                    yield "docs/building.md", 1, f"tools/dev does not install {word}"
    for file in FILES:
        path = pathlib.PurePath(file)
        if len(path.parts) == 1 or path.name == "README.md" or path.parts[0].startswith("."):
            continue
        above = next((str(p) for p in path.parents if str(p) in names), ".")
        if above == ".":
            yield file, 1, "no README.md in its folder or above"
            continue
        inside = path.relative_to(above)
        wanted = [str(inside)] + [str(p) for p in inside.parents if str(p) != "."]
        if not any(w.count("/") == n.count("/") and fnmatch.fnmatch(w, n) for n in names[above] for w in wanted):
            yield file, 1, f"{readmes[above]} does not name it"


def tables():
    """Rejects tables (*.def) that nothing includes, and rows without a counterpart that docs/extending.md requires and
    no compiler checks."""
    text = "\n".join(read(n) for n in FILES if n.endswith((".c", ".h", ".l", ".y", ".cmake", ".txt", ".def")))
    for name in sources(".def"):
        if name.rsplit("/", 1)[1] not in text.replace(f"/* {name}", ""):
            yield name, 1, "nothing includes it"
    rules = "".join(read(name) for name in FILES if name.endswith(".rules"))
    for name in sources("activation.def"):
        for number, line in lines(name):
            row = re.match(r"HLO_ACTIVATION\((\w+),", line)
            if row and f"epilogue += {row[1]};" not in rules:
                yield name, number, f"no rule adds {row[1]} to a call"
    pages = {name: read(name) if name in FILES else "" for name in ("tools/options.def", "docs/cost.md", "docs/diagnostics.md")}
    examples = "".join(re.findall(r"^```.*?^```", read("docs/cli.md"), re.M | re.S)) if "docs/cli.md" in FILES else ""
    programs = "".join(read(name) for name in FILES if name.startswith("tools/") and name.endswith(".c"))
    goldens = "".join(read(name) for name in FILES if name.startswith("testdata/") and not name.startswith(MODELS))
    for name, pattern, lacks in (
            ("target.def", r'HLO_TARGET\((\d+),', lambda row: [] if re.search(rf"\bsm_{row[1]}\b", pages["docs/cost.md"]) else [f"docs/cost.md does not have sm_{row[1]}"]),
            ("format.def", r"HLO_REMARKS_FORMAT\(\w+, (\w+)\)", lambda row: [] if f"| `{row[1]}` |" in pages["docs/diagnostics.md"] else [f"docs/diagnostics.md does not have {row[1]}"]),
            ("diag_code.def", r'HLO_DIAG\(\d+, \w+, "([\w-]+)", "(.*)"\)', lambda row: [] if f"| `{row[1]}` | {row[2]} |" in pages["docs/diagnostics.md"] else [f"docs/diagnostics.md does not have the row of {row[1]}"]),
            ("reason.def", r'HLO_REASON\(\w+, "([\w-]+)"', lambda row: [] if f"passes/reason/pages/{row[1]}.md" in FILES else [f"there is no page passes/reason/pages/{row[1]}.md"]),
            ("pass.def", r'PASS\("([\w-]+)", FUNCTION', lambda row: [] if re.search(rf"\b{row[1]}\b", goldens) else [f"no test in testdata runs {row[1]}"]),
            ("options.def", r"OPTION\((\w+),", lambda row: [] if f"OPTION_{row[1]}" in programs else [f"no program reads OPTION_{row[1]}"]),
            ("options.def", r'OPTION\(\w+, .*?(?:NULL|"([\w-]+)"), [A-Z]+, ', lambda row: [] if re.search(rf"--{row[1]}\b(?!-)" if row[1] else r" -o ", examples) else [f"docs/cli.md has no example of --{row[1]}"])):
        for table in sources("/" + name):
            for number, line in lines(table):
                row = re.match(pattern, line)
                for what in lacks(row) if row else ():
                    yield table, number, what
    for number, line in lines("docs/cli.md") if examples else ():
        for option in re.findall(r"(?<![\w-])--([a-z][a-z0-9-]*)", line):
            if f'"{option}", ' not in pages["tools/options.def"] and not option.startswith("xla"):
                yield "docs/cli.md", number, f"there is no option --{option}"


def silence():
    """Rejects library code that prints, exits or aborts, or keeps mutable state in a file-scope variable."""
    call = re.compile(r"(?<![\w.>])(printf|puts|putchar|perror|exit|_Exit|abort|vprintf)\s*\(|\b(stdout|stderr)\b")
    state = re.compile(r"^static (?!inline|const\b|_Thread_local const)[\w ]+\**\s*\w+(\[\w*\])?\s*(=[^=].*)?;")
    for name in sources(".c", ".h", ".l", ".y", rooms=LIBRARY):
        comment = False
        for number, line in lines(name):
            bare = re.sub(r'"(\\.|[^"\\])*"', '""', line)
            bare = re.sub(r"/\*.*?\*/|//.*", "", bare)
            if comment:
                comment = "*/" not in bare
                continue
            if "/*" in bare:
                comment, bare = True, bare.split("/*")[0]
            if call.search(bare):
                yield name, number, f"the library neither prints nor exits: {line.strip()}"
            elif state.match(bare) and " const " not in bare and name != "ir/memory.c":  # the allocator of the process
                yield name, number, f"mutable state: {line.strip()}"


def questions():
    """Rejects functions named as questions (is_, has_, can_, ...) that can create instructions: a builder or a rule's
    environment is not const."""
    head = re.compile(r"^(?:static )?bool (\w*(?<![a-z])(?:is|are|has|have|can|may|must|needs)_\w+)\(([^)]*)\)", re.M)
    for name in sources(".c", ".h", rooms=LIBRARY):
        text = read(name)
        for found in head.finditer(text):
            if re.search(r"(?<!const )\b(hlo_builder|hlo_rule_env) \*", found[2]):
                yield name, text.count("\n", 0, found.start()) + 1, f"{found[1]}() is a question and must not make instructions"


def examples():
    """Rejects C and CMake code in README.md or docs/ that the tested programs of tests/embed and examples do not
    contain, word for word."""
    programs = "".join(read(n) for n in FILES if n.startswith(("tests/embed/", "examples/")))
    for block in of("tests/lint/lint.py", ROOT):
        if block.code not in programs:
            yield block.page, block.line - 1, "not in tests/embed or examples"


def blocks():
    """Rejects code blocks of README.md and docs/ that no test runs, without a reason."""
    yield from faults(ROOT)


def coverage():
    """Rejects names in testdata/passes/COVERAGE.md and docs/from-gemm-rewriter.md that do not exist, and tests in the
    former that are not run in both ways."""
    rules = set(re.findall(r"^rule ([\w-]+)", "".join(read(n) for n in sources(".rules")), re.M))
    for table in ("testdata/passes/COVERAGE.md", "docs/from-gemm-rewriter.md"):
        for number, line in lines(table) if table in FILES else ():
            if table.startswith("testdata/") and not line.startswith("|"):
                continue
            for rule in re.findall(r"`rule ([a-z][\w-]*)`", line):
                if rule not in rules:
                    yield table, number, f"there is no rule {rule}"
            for test, star in re.findall(r"`([\w-]+/[\w-]+)(\*?)`", line):
                file = next((n for n in FILES if n.startswith(f"testdata/passes/{test}.")), None)
                if not file:
                    yield table, number, f"there is no {test}"
                    continue
                runs = re.findall(r"RUN: %hlo-fp8-opt (.*)", read(file))
                both = any("--passes" not in r for r in runs) and any("--passes=fp8-gemm-rewriter " in r for r in runs)
                if table.startswith("testdata/") and both == bool(star):
                    yield table, number, f"{test} is {'' if both else 'not '}run with the default passes and the rewriter alone"


def formatter():
    for name in (pathlib.Path(sys.executable).parent / "clang-format", "clang-format-14", "clang-format"):
        found = shutil.which(str(name))
        if found and " 14." in subprocess.run([found, "--version"], capture_output=True, text=True).stdout:
            return found
    sys.exit("lint.py: clang-format 14 is needed: tools/dev deps")


def format():
    """Rejects C files that clang-format would change."""
    files = list(sources(".c", ".h"))
    command = [formatter()]
    if "--check" not in sys.argv:
        subprocess.run([*command, "-i", *files], cwd=ROOT, check=True)
        return
    found = subprocess.run([*command, "--dry-run", *files], cwd=ROOT, capture_output=True, text=True)
    seen = set()
    for name, number in re.findall(r"^([^\s:]+):(\d+):\d+: warning", found.stderr, re.M):
        if name not in seen:
            seen.add(name)
            yield name, number, "clang-format would change it: tools/dev format"
    if found.returncode:
        yield files[0], 1, found.stderr.strip()


CHECKS = {check.__name__: check for check in
          (directives, size, functions, headings, guards, comments, words, language, spdx, products, readme, tables, silence, questions, examples, blocks, coverage, format)}


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in CHECKS:
        sys.exit(__doc__ + "\n" + "\n".join(f"  {n:12}{c.__doc__}" for n, c in CHECKS.items()))
    count = 0
    for name, number, what in CHECKS[sys.argv[1]]():
        print(f"{name}:{number}: {what}")
        count += 1
    sys.exit(1 if count else 0)


main()
