#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs with versions of the frameworks, and writes modules and arrays to testdata/versions.

usage: make.py [--venvs DIR] [--out DIR] [--every] [VERSION...]

Without a VERSION, such as jax-0.4.13, makes the oldest and the newest version of each framework; --every makes all.
Creates a virtual environment of each version with the Python that its wheels need, found in PATH or by pyenv. The
archive VERSION.tar.xz has a folder per program: before.hlo and after.hlo, as XLA dumps them before and after its
optimizations, also as .hlo.pb if the text elides constants; inputs.npz and outputs.npz, and inputs8.npz and
outputs8.npz of each device if there are several. A program that a version does not support is left out, with a line
that says why.
"""
import argparse
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
OLD = ["numpy<2", "scipy<1.13"]

# The versions that are made anew with --every, oldest first: the Python, and further requirements. The first and the
# last of each framework are in testdata/versions.
VERSIONS = {
    "jax-0.4.13": ("3.9", OLD), "jax-0.4.20": ("3.11", OLD), "jax-0.4.26": ("3.11", OLD), "jax-0.4.30": ("3.11", OLD), "jax-0.4.35": ("3.11", OLD), "jax-0.5.3": ("3.11", []), "jax-0.6.2": ("3.11", []),
    "jax-0.7.2": ("3.11", []), "jax-0.8.0": ("3.11", []), "jax-0.8.3": ("3.11", []), "jax-0.9.2": ("3.11", []), "jax-0.10.2": ("3.11", []), "jax-0.11.2": ("3.12", []), "jax-0.12.0.1": ("3.13", []),
    "tensorflow-2.8.4": ("3.9", ["protobuf<3.20", "numpy<1.24"]), "tensorflow-2.11.1": ("3.9", ["numpy<1.24"]), "tensorflow-2.13.1": ("3.11", []), "tensorflow-2.15.1": ("3.11", []), "tensorflow-2.17.1": ("3.11", []),
    "tensorflow-2.19.1": ("3.11", []), "tensorflow-2.21.0": ("3.13", []),
    "torch_xla-2.1.0": ("3.9", ["torch==2.1.0", "numpy<2"]), "torch_xla-2.5.1": ("3.11", ["torch==2.5.1", "numpy"]), "torch_xla-2.9.0": ("3.13", ["torch==2.9.0", "numpy"]),
}


def ends():
    """Returns the oldest and the newest version of each framework."""
    frameworks = {name.split("-")[0]: [n for n in VERSIONS if n.split("-")[0] == name.split("-")[0]] for name in VERSIONS}
    return [name for names in frameworks.values() for name in (names[0], names[-1])]


def python(version):
    found = shutil.which("python" + version)
    pyenv = sorted(pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")).glob(f"versions/{version}.*/bin/python"))
    if not found and not pyenv:
        sys.exit(f"make.py: error: found no Python {version}")
    return pyenv[-1] if pyenv else found


def environment(venvs, name):
    """Creates the virtual environment of a version if it does not exist. Returns its Python."""
    folder = venvs / name
    if not folder.exists():
        framework, version = name.split("-")
        package = {"jax": [f"jax=={version}", f"jaxlib=={version}"], "tensorflow": [f"tensorflow-cpu=={version}"], "torch_xla": [f"torch_xla=={version}"]}[framework]
        subprocess.run([python(VERSIONS[name][0]), "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin/pip", "install", "-q", "--no-cache-dir", *package, *VERSIONS[name][1]], check=True)
    return folder / "bin/python"


def last_error(text):
    lines = [line for line in text.splitlines() if "Error" in line and not line.startswith(" ")]
    return lines[-1][:200] if lines else text[-200:]


def collect(folder, program):
    """Returns the files of a program by name, or a text that says why there is no module."""
    files = {}
    for stage, suffix in (("before", "before_optimizations"), ("after", "cpu_after_optimizations")):
        texts = [f for f in (folder / "dump").glob(f"*{suffix}.txt")]
        named = [f for f in texts if f".jit_{program}." in f.name or f"_inference_{program}_" in f.name]
        if len(named or texts) != 1:
            return f"it has {len(texts)} modules"
        text = (named or texts)[0]
        files[stage + ".hlo"] = text.read_bytes()
        if b"{...}" in files[stage + ".hlo"]:
            files[stage + ".hlo.pb"] = text.with_suffix(".hlo.pb").read_bytes()
    return files | {f.name: f.read_bytes() for f in sorted(folder.glob("*.npz"))}


def make(name, venvs, out):
    """Writes the archive of a version."""
    interpreter, framework = environment(venvs, name), name.split("-")[0]
    work = venvs / "work" / name
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for script in ("_program.py", f"programs_{framework}.py"):
        shutil.copy(HERE / script, work)
    settings = dict(os.environ, CUDA_VISIBLE_DEVICES="", JAX_PLATFORMS="cpu", PJRT_DEVICE="CPU", TF_CPP_MIN_LOG_LEVEL="3", PYTHONDONTWRITEBYTECODE="1")
    command = [interpreter, work / f"programs_{framework}.py"]
    programs = subprocess.run(command, env=settings, check=True, capture_output=True, text=True).stdout.split()
    with tarfile.open(out / (name + ".tar.xz"), "w:xz", preset=9) as archive:
        for program in programs:
            folder = work / program
            folder.mkdir()
            flags = f"--xla_dump_to={folder / 'dump'} --xla_dump_hlo_as_text --xla_dump_hlo_as_proto"
            done = subprocess.run([*command, program, folder], env=dict(settings, XLA_FLAGS=flags), capture_output=True, text=True)
            files = collect(folder, program) if not done.returncode else last_error(done.stderr)
            if isinstance(files, str):
                print(f"{name}: {program} is left out: {files}")
                continue
            for member, content in sorted(files.items()):
                entry = tarfile.TarInfo(f"{program}/{member}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venvs", type=pathlib.Path, default=pathlib.Path("/tmp/versions"))
    parser.add_argument("--out", type=pathlib.Path, default=HERE.parents[2] / "testdata/versions")
    parser.add_argument("--every", action="store_true")
    parser.add_argument("versions", nargs="*")
    args = parser.parse_args()
    for folder in (args.venvs, args.out):
        folder.mkdir(parents=True, exist_ok=True)
    for name in args.versions or (VERSIONS if args.every else ends()):
        make(name, args.venvs, args.out)


if __name__ == "__main__":
    main()
