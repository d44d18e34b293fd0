#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the HTML page about all models: every tag is closed, every id unique, every link points into the page, nothing
is loaded from elsewhere, and the content security policy has the hashes of the style and the script. The data of the
page has the groups and matmuls of the JSON remarks. With Graphviz, the most expensive matmuls have two graphs."""
import base64
import hashlib
import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys

import _page
import _script

VOID = {"meta", "br", "input", "wbr"}
MAX_DRAWN, MAX_LISTED = 100, 200


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.counts = [], [], [], {}

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        self.counts[tag] = self.counts.get(tag, 0) + 1
        # A template is not a part of the document until the script copies its content, without ids.
        self.ids += [attrs["id"]] if "id" in attrs and ("template" not in self.open or tag == "template") else []
        self.links += [attrs[name] for name in ("href", "src", "xlink:href") if name in attrs]
        assert not any(name.startswith("on") or name == "style" for name in attrs), attrs

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (self.open[-3:], tag, self.getpos())
        self.open.pop()


def check_markup(text, page, reasons, groups):
    assert not page.open, page.open
    assert len(page.ids) == len(set(page.ids)), "an id stands twice"
    states = {f"#reason={reason}" for reason in reasons} | {f"#rows={i}&open=g0" for i in range(1, groups + 1)}
    assert page.links and all(link in states or link[0] == "#" and link[1:] in page.ids for link in page.links), page.links
    assert not re.search(r"url\(|@import|https?:|fetch|XMLHttp|import\(", text.replace("http://www.w3.org", ""))
    [policy] = re.findall(r'Content-Security-Policy" content="(.*?)"', text)
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy, policy
    for element in ("style", "script"):
        [content] = re.findall(rf"<{element}>(.*?)</{element}>", text, re.S)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy, (element, digest)


def check_data(data, remarks):
    """The groups are those of the remarks in their order; the matmuls are sorted by time."""
    groups, dots = remarks["groups"], remarks["dots"]
    assert [(g["layer"], g["verdict"], g.get("reason"), g["count"]) for g in data["groups"]] == \
        [(g["layer"], g["verdict"], g["reason"], g["matmuls"]) for g in groups]

    def facts(dot):
        return dot["group"], dot["verdict"], dot.get("op_name") or "", dot.get("message") or ""

    assert sorted(facts(m) + (m["name"],) for m in data["matmuls"]) == sorted(facts(dot) + (dot["input_instruction"],) for dot in dots)
    times = [m["seconds"] for m in data["matmuls"]]
    assert times == sorted(times, reverse=True) and len(set(times)) > 20
    assert all(m["facts"]["op_name"] == m["op_name"] for m in data["matmuls"] if "op_name" in m)
    shown = [m for m in data["matmuls"] if m["before_graph"]]
    assert shown == data["matmuls"][:MAX_LISTED] and all(m["after_graph"] for m in shown if "output" in m)
    return shown


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
    dots, reasons, groups = remarks["dots"], remarks["summary"]["reasons"], remarks["groups"]
    check_markup(text, page, [*reasons, "slower"], len(groups))
    slower = any(g["reason"] == "slower" for g in groups)
    assert page.counts["details"] == len(reasons) + slower
    assert f"<title>hlo-fp8: {remarks['summary']['fp8']} of {len(dots)} matmuls in FP8" in text
    shown = check_data(_page.data_of(text), remarks)
    drawn = page.counts.get("template", 0)
    if shutil.which("dot"):
        sides = [m[side] for m in shown for side in ("before_graph", "after_graph")]
        numbers = {side for side in sides if isinstance(side, int) and side}
        assert 50 < drawn <= MAX_DRAWN and numbers == set(range(1, drawn + 1)), drawn
        assert all(f'<template id="drawing{i}"><svg' in text for i in range(1, drawn + 1))
    print(f"{len(dots)} matmuls, {drawn} drawings{'' if shutil.which('dot') else ' (no Graphviz here)'}")


if __name__ == "__main__":
    sys.exit(main())
