#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the HTML page about all models: every tag is closed, every id unique, every link points into the page, nothing
is loaded from elsewhere, and each matmul has a section. With Graphviz, the first sections have two graphs; with
Node.js, the script sorts and filters."""
import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys

import _script

VOID = {"meta", "br", "input"}
DRAWN_MOST = 50


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.counts, self.rows = [], [], [], {}, []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [attrs[name] for name in ("href", "src", "xlink:href") if name in attrs]
        assert not any(name.startswith("on") for name in attrs), attrs
        if "data-kind" in attrs:
            self.rows.append({"data": {name[5:]: value for name, value in attrs.items() if name.startswith("data-")}, "text": ""})

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_data(self, text):
        if self.rows and "summary" in self.open:
            self.rows[-1]["text"] += text

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (self.open[-3:], tag, self.getpos())
        self.open.pop()


# A substitute for the parts of a document that the script uses, with rows that Python has read. Prints the rows shown,
# in order, after each step.
DOCUMENT = r"""
const rows = JSON.parse(require('fs').readFileSync(0)).map(r => (
    {dataset: r.data, firstElementChild: {textContent: r.text}, hidden: false, number: r.number}));
const box = {children: rows.slice(), append(...all) { this.children = all; }};
const listeners = {}, buttons = ['time', 'flops', 'kind', 'name', 'reason', 'source'].map(value => (
    {value, addEventListener(name, f) { this[name] = f; }}));
const tools = {hidden: true, elements: {words: {value: ''}, kind: {value: ''}}, querySelectorAll: () => buttons,
               addEventListener(name, f) { listeners[name] = f; }};
const shown = {}, document = {getElementById: id => ({tools, matmuls: box, shown})[id]};
SCRIPT;
const out = [], note = () => out.push(box.children.filter(r => !r.hidden).map(r => r.number));
const press = key => buttons.find(b => b.value === key).click();
note();
press('flops'); note();
press('flops'); note();
press('name'); note();
tools.elements.kind.value = 'wide'; listeners.input(); note();
tools.elements.kind.value = ''; tools.elements.words.value = 'FP8-output  ReLU'; listeners.input(); note();
console.log(JSON.stringify({out, hidden: tools.hidden, count: shown.textContent}));
"""


def check_script(text, page):
    [script] = re.findall(r"<script>(.*?)</script>", text, re.S)
    rows = [row | {"number": number} for number, row in enumerate(page.rows)]
    done = subprocess.run(["node", "-e", DOCUMENT.replace("SCRIPT", script)], input=json.dumps(rows), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    flops = [float(row["data"]["flops"]) for row in rows]
    first, by_flops, back, by_name, wide, words = told["out"]
    assert first == list(range(len(rows)))
    assert [flops[i] for i in by_flops] == sorted(flops, reverse=True) and [flops[i] for i in back] == sorted(flops)
    names = [rows[i]["data"]["name"] for i in by_name]
    assert names == sorted(names) and len(set(names)) > 20, names
    assert set(wide) == {i for i, row in enumerate(rows) if row["data"]["kind"] == "wide"} and wide
    assert set(words) == {i for i, row in enumerate(rows) if "fp8-output" in row["text"].lower() and "relu" in row["text"].lower()} and words
    assert not told["hidden"] and told["count"] == f"{len(words)} of {len(rows)}", told


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
    assert page.counts["script"] == 1 and not re.search(r"url\(|@import|https?:|fetch|XMLHttp|import\(", text.replace("http://www.w3.org", ""))
    assert "default-src 'none'" in text
    if shutil.which("node"):
        check_script(text, page)
    dots, lints, reasons = remarks["dots"], remarks["lints"], remarks["summary"]["reasons"]
    assert len(page.rows) == len(dots) and all(row["data"]["name"] in row["text"] for row in page.rows)
    assert page.counts["details"] == len(dots) + len(lints) + len(reasons)
    assert f"<title>hlo-fp8: {remarks['summary']['fp8']} of {len(dots)} matmuls in FP8" in text
    drawn = page.counts.get("svg", 0)
    if shutil.which("dot"):
        assert DRAWN_MOST < drawn <= 2 * DRAWN_MOST, drawn
    print(f"{len(dots)} matmuls, {drawn} drawings{'' if shutil.which('dot') else ' (no Graphviz here)'}")


if __name__ == "__main__":
    sys.exit(main())
