#!/usr/bin/env python3
"""The HTML page about all models: every tag closed, every id unique, every link to something on the page, nothing from elsewhere,
a part for each matmul, and where Graphviz is installed two drawings in each of the first."""
import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys

import _script

VOID = {"meta", "br"}
DRAWN_MOST = 50


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.counts = [], [], [], {}

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [attrs[name] for name in ("href", "src", "xlink:href") if name in attrs]
        assert not any(name.startswith("on") for name in attrs), attrs

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (self.open[-3:], tag, self.getpos())
        self.open.pop()


def main():
    args = _script.parser(pathlib.Path).parse_args()
    models = sorted(p for p in args.models.glob("*.hlo") if p.name.count(".") == 1)
    told = args.work / "report.html"
    done = subprocess.run([args.bin / "hlo-fp8-opt", f"--report={told}", "--remarks-format=json", "--lint", "-o", "/dev/null",
                           f"--remarks-file={args.work}/report.json", *models], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    remarks = json.loads((args.work / "report.json").read_text())
    text = told.read_text()
    page = Page()
    page.feed(text)
    page.close()
    assert not page.open, page.open
    assert len(page.ids) == len(set(page.ids)), "an id stands twice"
    assert page.links and all(link[0] == "#" and link[1:] in page.ids for link in page.links), page.links
    assert "script" not in page.counts and not re.search(r"url\(|@import", text)
    dots, lints, reasons = remarks["dots"], remarks["lints"], remarks["summary"]["reasons"]
    assert page.counts["details"] == len(dots) + len(lints) + len(reasons)
    assert f"<title>hlo-fp8: {remarks['summary']['fp8']} of {len(dots)} matmuls in FP8" in text
    drawn = page.counts.get("svg", 0)
    if shutil.which("dot"):
        assert DRAWN_MOST < drawn <= 2 * DRAWN_MOST, drawn
    print(f"{len(dots)} matmuls, {drawn} drawings{'' if shutil.which('dot') else ' (no Graphviz here)'}")


if __name__ == "__main__":
    sys.exit(main())
