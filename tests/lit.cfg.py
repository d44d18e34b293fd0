# SPDX-License-Identifier: Apache-2.0
# Configuration of lit for the golden tests in testdata/: see tests/README.md.
import os

import lit.formats

config.name = "hlo-fp8"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".hlo", ".test"]
config.excludes = ["models"]
config.test_source_root = config.hlo_source_dir + "/testdata"
# Executing and reading many models is slow in the sanitized build, and covers no additional code.
if config.hlo_sanitize:
    config.available_features.add("sanitized")
try:
    for end in os.openpty():
        os.close(end)
    config.available_features.add("terminal")
except OSError:  # a system without pseudo terminals
    pass
config.test_exec_root = config.hlo_binary_dir + "/testdata"

# The status of a sanitizer report must differ from those of a rejected module (1) and a gate (3).
config.environment["ASAN_OPTIONS"] = "exitcode=99:detect_leaks=1"
config.environment["UBSAN_OPTIONS"] = "exitcode=99:print_stacktrace=1"
config.environment["OPENBLAS_NUM_THREADS"] = "1"  # NumPy would start a thread per core, each of which waits actively

if "HLO_UPDATE_GOLDENS" in os.environ:
    config.environment["HLO_UPDATE_GOLDENS"] = os.environ["HLO_UPDATE_GOLDENS"]

for name in ("filecheck", "not"):
    if not getattr(config, "hlo_" + name):
        lit_config.fatal(f"LLVM's {name} was not found: run tools/dev deps, then configure again")

# Paths may contain spaces.
quoted = '"{}"'.format
standin = config.hlo_binary_dir + "/tests/cuda_standin.so"
config.substitutions += [
    (r"%standin\b", quoted(standin)),
    (r"%plugin\b", quoted(config.hlo_binary_dir + "/tests/oom_plugin.so")),
    (r"%on-standin\b", "env " + " ".join(f"HLO_CUDA_{library}=\"{standin}\"" for library in ("DRIVER", "CUBLASLT", "NVRTC"))),
    *((rf"(?<!%)%{letter}\b", quoted("%" + letter)) for letter in "stS"),
    (r"%hlo-fp8-opt\b", quoted(config.hlo_bin_dir + "/hlo-fp8-opt")),
    *((rf"%{name}\b", quoted(f"{config.hlo_bin_dir}/{name}")) for name in ("rulec", "generate")),
    (r"%completions\b", quoted(config.hlo_binary_dir + "/completions")),
    (r"%bin\b", quoted(config.hlo_bin_dir)),
    (r"%man\b", quoted(config.hlo_binary_dir + "/man")),
    (r"%hlo-fp8-run\b", quoted(config.hlo_bin_dir + "/hlo-fp8-run")),
    (r"%lt-calls\b", quoted(config.hlo_bin_dir + "/lt_calls")),
    (r"%status\b", quoted(config.hlo_source_dir + "/tests/status.sh")),
    (r"%models\b", quoted(config.hlo_source_dir + "/testdata/models")),
    (r"%golden\s+", quoted(config.hlo_source_dir + "/tests/golden.sh") + " golden/"),
    (r"%page\b", f'{quoted(config.hlo_python)} {quoted(config.hlo_source_dir + "/tests/peer/_page.py")}'),
    (r"%python\b", quoted(config.hlo_python)),
    (r"\bFileCheck\b", quoted(config.hlo_filecheck)),
    (r"(?<![\w%/-])not (?=%|[\w/])", quoted(config.hlo_not) + " "),
]
