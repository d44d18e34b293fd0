"""Checks that the output has no byte that controls a terminal, for every byte and some control characters in
metadata, file names and options.

usage: plain_text.py FOLDER hlo-fp8-opt hlo-fp8-run
"""
import json
import os
import re
import subprocess
import sys
import xml.dom.minidom

BAD = b"".join(bytes([i]) for i in [*range(1, 0x20), *range(0x7f, 0x100)] if i not in (0x0a, 0x0d)) + "\u009b\u202e\u2066\u200b".encode()
MODULE = b"""HloModule m
ENTRY e {
  a = f8e4m3fn[16,32] parameter(0)
  b = f32[32,48] parameter(1)
  w = f32[16,32] convert(a)
  ROOT d = f32[16,48] dot(w, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="%s\\n::error file=x::y" source_file="%s.py" source_line=3}
}
"""


def quoted(text):
    return text.replace(b"\\", b"\\\\").replace(b'"', b'\\"')


COUNT = 0


def is_plain(said):
    global COUNT
    COUNT += 1
    text = said.decode()  # UTF-8, or this fails
    steers = re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f]", text)
    assert not steers, (steers, said)
    assert not re.search("^::error", text, re.MULTILINE), said


def main():
    folder, opt, run = map(os.fsencode, sys.argv[1:])
    name = BAD.replace(b"/", b"") + b"\n::error x"
    path = os.path.join(folder, name[:120] + b"\n::error x.hlo")
    for file in path, os.path.join(folder, b"m.hlo"):
        with open(file, "wb") as out:
            out.write(MODULE % (quoted(BAD), quoted(BAD)))
    plain = os.path.join(folder, b"m.hlo")
    null = b"/dev/null"

    def said(*command, statuses=(0,)):
        ran = subprocess.run(command, capture_output=True)
        assert ran.returncode in statuses, (command, ran.returncode, ran.stderr)
        return ran.stdout, ran.stderr

    for form in b"text", b"github", b"markdown":
        for which in b"all", b"summary":
            is_plain(said(opt, b"--remarks=" + which, b"--remarks-format=" + form, b"-o", null, path)[1])
    is_plain(said(opt, b"--stats", b"--time-passes", b"-o", null, path)[1])
    is_plain(said(opt, b"--expect-fp8=all", b"-o", null, path, statuses=[3])[1])
    is_plain(said(opt, b"--fail-on-missed", b"-o", null, path, statuses=[3])[1])
    with open(os.path.join(folder, b"other.hlo"), "wb") as out:
        out.write((MODULE % (quoted(BAD), quoted(BAD))).replace(b"48", b"64"))
    is_plain(said(opt, b"--diff", path, os.path.join(folder, b"other.hlo"), statuses=[3])[0])
    for option in b"--passes=" + name, b"--expect-fp8=" + name, b"--fail-on-missed=" + name, b"--" + name, b"--format=" + name, b"--target=" + name:
        is_plain(said(opt, option, plain, statuses=[2])[1])
    for program in opt, run:
        is_plain(said(program, path + b"not there", statuses=[1])[1])
    is_plain(said(opt, plain, b"-o", os.path.join(folder, b"no" + name[:100], b"x"), statuses=[1])[1])
    with open(os.path.join(folder, name[:120] + b"wrong"), "wb") as out:
        out.write(b"ENTRY e {\n  ROOT a = f32[2] " + BAD + b"\n}\n")
    is_plain(said(opt, os.path.join(folder, name[:120] + b"wrong"), statuses=[1])[1])
    for form in b"json", b"sarif", b"gitlab":
        document, _ = said(opt, b"--remarks=all", b"--remarks-format=" + form, b"--remarks-file=/dev/stdout", b"-o", null, path)
        json.loads(document.decode())
    document, _ = said(opt, b"--remarks=all", b"--remarks-format=junit", b"--remarks-file=/dev/stdout", b"-o", null, path)
    xml.dom.minidom.parseString(document)
    page, _ = said(opt, b"--report=/dev/stdout", b"-o", null, path)
    assert "\x1b" not in page.decode()
    print(f"{COUNT} commands say nothing that steers")


if __name__ == "__main__":
    sys.exit(main())
# SPDX-License-Identifier: Apache-2.0
