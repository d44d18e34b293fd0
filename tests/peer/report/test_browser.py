#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens the HTML page in Chromium: order, filters, opened rows, links, keyboard, dark and light colors, print, a phone,
a browser without scripts, names that look like markup, and many layers. The browser must print no message to its
console, and load nothing. Saves screenshots in the work folder."""
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys

import _script

ROWS = "table.layers:not(noscript *) > tbody > tr:not(.matmul):not(.detail):not(.end)"


def page_of(args, name, modules, *options):
    """Writes the page about modules, and returns its URL and the JSON remarks."""
    page, remarks = args.work / f"{name}.html", args.work / f"{name}.json"
    done = subprocess.run([args.bin / "hlo-fp8-opt", f"--report={page}", "--remarks=all", "--remarks-format=json",
                           f"--remarks-file={remarks}", "--lint", "-o", "/dev/null", *options, *modules], capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stderr
    return page.as_uri(), json.loads(remarks.read_text())


def module_of(names, path):
    """Writes a module with a matmul of each name, each with its own shape."""
    lines, roots = ["HloModule m", "", "ENTRY e {"], []
    for i, name in enumerate(names):
        lines += [f"  a{i} = bf16[{4096 + i},4096] parameter({2 * i})", f"  b{i} = bf16[4096,4096] parameter({2 * i + 1})",
                  f"  dot.{i} = bf16[{4096 + i},4096] dot(a{i}, b{i}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, "
                  f'metadata={{op_name="jit(f)/{name}/dot_general"}}']
        roots.append(f"dot.{i}")
    shapes = ", ".join(f"bf16[{4096 + i},4096]" for i in range(len(names)))
    path.write_text("\n".join([*lines, f"  ROOT r = ({shapes}) tuple({', '.join(roots)})", "}", ""]), encoding="utf-8")
    return path


class Browser:
    """A browser of which every page must stay without messages and requests."""

    def __init__(self, playwright, program, work):
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        self.browser, self.work, self.wrong = playwright.chromium.launch(executable_path=program, args=sandbox), work, []

    def open(self, url, **options):
        page = self.browser.new_context(**{"viewport": {"width": 1300, "height": 900}, **options}).new_page()
        page.on("console", lambda message: self.wrong.append(message.text))
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("dialog", lambda dialog: self.wrong.append(dialog.message))
        page.on("request", lambda request: None if request.url.startswith(url.split("#")[0]) else self.wrong.append(request.url))
        page.goto(url)
        return page

    def close(self, page, shot=None):
        if shot:
            page.screenshot(path=self.work / f"{shot}.png")
        page.context.close()
        assert not self.wrong, self.wrong


def layers(page):
    """The texts of the layers in the table, in order, without the second line."""
    return page.locator(f"{ROWS} > th .opener > span").evaluate_all("all => all.map(e => e.firstChild.textContent)")


def texts(page, column):
    return page.locator(f"{ROWS} > td:nth-child({column})").all_inner_texts()


def wait(page, condition):
    """Waits until the condition is true. The policy of the page does not permit Playwright's wait_for_function()."""
    for _ in range(100):
        if condition():
            return
        page.wait_for_timeout(50)
    raise AssertionError("a condition did not become true")


def check_order(browser, url, remarks):
    """The table has the groups of the JSON remarks in their order, and sorts by each column."""
    page = browser.open(url)
    groups = remarks["groups"]
    assert layers(page) == [g["layer"] for g in groups][:len(layers(page))] and len(layers(page)) >= min(50, len(groups))
    head = page.locator("#table thead button[value=seconds]")
    assert page.locator("#table [aria-sort=descending]").inner_text() == "saves"
    head.click()
    by_time = [g["layer"] for g in sorted(groups, key=lambda g: -(g["seconds"] or 0))]
    assert layers(page)[:10] == by_time[:10] and page.url.endswith("#sort=seconds"), page.url
    assert head.locator("..").get_attribute("aria-sort") == "descending"
    head.click()
    assert layers(page)[0] == min(groups, key=lambda g: g["seconds"] or 0)["layer"] and page.url.endswith("#sort=-seconds")
    page.locator("#table thead button[value=layer]").click()
    assert layers(page) == sorted(layers(page)) and len(set(layers(page))) > 5
    assert page.locator("#table [aria-sort=ascending]").inner_text() == "layer"
    page.reload()
    assert layers(page) == sorted(layers(page)), "the order is not in the URL"
    browser.close(page, "light")


def check_filters(browser, url, remarks):
    page, dots = browser.open(url), remarks["dots"]
    page.locator("[name=verdict]").select_option("wide")
    wide = sum(dot["verdict"] == "wide" for dot in dots)
    assert f"{wide} of {len(dots)} matmuls" in page.locator("#shown").inner_text() and 0 < wide < len(dots)
    assert all("wide" in text for text in texts(page, 5)) and "verdict=wide" in page.url
    totals = page.locator("#table tr.totals > *").all_inner_texts()
    seconds = sum(dot["runs"] * dot["seconds"] for dot in dots if dot["verdict"] == "wide" and dot["seconds"] and dot["input_seconds"])
    unit = {"ms": 1e-3, "µs": 1e-6}[totals[2].split()[1]]
    assert totals[0] == "filtered rows" and totals[4] == str(wide) and math.isclose(float(totals[2].split()[0]) * unit, seconds, rel_tol=0.01), totals
    page.locator("[name=reason]").select_option("both-operands-e5m2")
    assert f"1 of {len(dots)} matmuls" in page.locator("#shown").inner_text()
    page.reload()
    assert page.locator("[name=reason]").input_value() == "both-operands-e5m2" and texts(page, 6) == ["both-operands-e5m2"]
    page.locator("button[type=reset]").click()
    assert f"{len(dots)} of {len(dots)} matmuls" in page.locator("#shown").inner_text() and "=" not in page.url
    assert page.locator("#table tr.totals > th").inner_text() == "all layers"
    page.locator("[name=words]").fill("  LM  UP ")
    assert layers(page) and all("lm" in text.lower() and "up" in text.lower() for text in layers(page)), layers(page)
    page.locator("[name=words]").fill("no such word")
    assert not layers(page)
    browser.close(page)


def check_rows(browser, url):
    """The keyboard opens a layer and a matmul, whose graphs are shown. The URL has what is open."""
    page = browser.open(url)
    page.locator("[name=words]").focus()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "opener":
            break
    page.keyboard.press("Enter")
    assert page.locator("tr.matmul").count() and "open=g" in page.url
    page.keyboard.press("Tab")
    while page.evaluate("document.activeElement.className") != "opener":
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('tr').className") == "matmul"
    page.keyboard.press("Space")
    assert page.locator("tr.detail").count() == 1 and page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"
    sides = page.locator("tr.detail .side")
    assert sides.count() == 2 and sides.nth(0).locator("h3").inner_text() == "Before"
    assert page.locator("tr.detail .side svg" if shutil.which("dot") else "tr.detail .side tr.here").count() == 2
    assert page.locator("tr.detail [id]").count() == 0, "ids of drawings would stand twice"
    page.reload()
    assert page.locator("tr.detail").count() == 1, "the opened rows are not in the URL"
    page.locator("tr.detail").locator("xpath=preceding-sibling::tr[1]").locator("button").click()
    assert page.locator("tr.detail").count() == 0
    page.locator(ROWS).locator("button[aria-expanded=true]").click()
    assert page.locator("tr.matmul").count() == 0 and "open" not in page.url
    browser.close(page)


def check_first_edit(browser, args):
    """The page begins with the layer whose edit saves most."""
    url, remarks = page_of(args, "edit", [module_of(["small", "large"], args.work / "edit.hlo")])
    page = browser.open(url)
    first = page.locator("a[href='#rows=1&open=g0']")
    assert first.inner_text() == "large" == remarks["groups"][0]["layer"], first.inner_text()
    first.click()
    page.wait_for_selector("tr.matmul")
    assert layers(page) == ["large"], "the link shows other rows than those of the layer"
    assert page.locator(ROWS).first.locator("button").get_attribute("aria-expanded") == "true"
    browser.close(page)


def check_links(browser, url):
    page = browser.open(url)
    link = page.locator(f"{ROWS} > td:nth-child(6) a").first
    reason = link.inner_text()
    link.click()
    page.wait_for_selector(f"#edit-{reason}[open]")
    assert page.locator(f"#edit-{reason} .inside").is_visible()
    page.locator(f"#edit-{reason} a.scripted").click()
    wait(page, lambda: page.locator("[name=reason]").input_value() == reason)
    assert set(texts(page, 6)) == {reason} and page.url.endswith(f"#reason={reason}")
    page.go_back()
    wait(page, lambda: "#edit-" in page.url)
    plot = page.locator("#roofline")
    plot.scroll_into_view_if_needed()
    place = page.evaluate("""() => {
        const plot = document.getElementById('roofline'), path = plot.querySelector('.dots.fp8');
        const [x, y] = path.getAttribute('d').slice(1).split(/[ h]/).map(Number);
        const at = new DOMPoint(x, y).matrixTransform(plot.getScreenCTM());
        return [at.x, at.y, path.dataset.groups.split(' ')[0]]}""")
    page.mouse.move(*place[:2])
    assert page.locator("#roofline > title").text_content()
    page.mouse.click(*place[:2])
    wait(page, lambda: "#open=g" in page.url)
    wait(page, lambda: page.locator("tr.matmul").count())
    assert page.locator("tr.matmul").count()
    browser.close(page)


def check_colors(browser, url):
    ink = []
    for scheme in ("light", "dark"):
        page = browser.open(url + "#open=g0+m0", color_scheme=scheme)
        ink.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        browser.close(page, scheme + "-opened")
    assert ink == ["rgb(255, 255, 255)", "rgb(17, 18, 20)"], ink


def check_print(browser, url, remarks):
    """All rows are printed, also those that were not in view, and those that are opened."""
    page = browser.open(url + "#open=g0", color_scheme="dark")
    groups = len(remarks["groups"])
    assert len(layers(page)) < groups, "all rows were in view"
    page.emulate_media(media="print", color_scheme="dark")
    page.pdf(path=browser.work / "print.pdf")
    assert len(layers(page)) == groups and page.locator("tr.matmul").count() >= 1
    assert not page.locator("#tools").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    browser.close(page, "print")


def check_phone(browser, url):
    page = browser.open(url + "#open=g0+m0", viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    page.locator(ROWS).first.locator("button").tap()
    page.locator(ROWS).first.locator("button").tap()
    for part in page.locator("details").all():
        part.evaluate("part => part.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = false")
    page.locator("#layers").scroll_into_view_if_needed()
    browser.close(page, "phone")


def check_without_script(browser, url, remarks):
    page = browser.open(url, java_script_enabled=False)
    shown = page.locator("noscript table.layers tr")
    assert shown.count() == 2 + min(200, len(remarks["groups"])) and shown.nth(2).is_visible()
    assert not page.locator("#table").is_visible() and not page.locator("#tools").is_visible()
    assert remarks["groups"][0]["layer"] in shown.nth(2).inner_text()
    browser.close(page)


def check_names(browser, args):
    """Names of a module are text, whatever they contain."""
    names = ["</script><img src=x onerror=alert(1)>", "<!--<script>", "a&lt;b&amp;", "line\u2028end", "]]></title></style><svg onload=alert(2)>"]
    url, remarks = page_of(args, "names", [module_of(names, args.work / "names.hlo")])
    page = browser.open(url)
    found = layers(page)
    assert len(found) == len(names) and set(found) == {g["layer"] for g in remarks["groups"]}, found
    assert sum("onerror=alert(1)" in text for text in found) == 1 and any("\u2028" in text for text in found)
    for row in range(len(names)):
        page.locator(ROWS).nth(row).locator("button").click()
        page.locator("tr.matmul button").last.click()
    assert page.locator("img").count() == 0
    browser.close(page)


def check_many(browser, args):
    """Rows are made when they come into view."""
    url, _ = page_of(args, "many", [module_of([f"layer_{'abcdefghij'[i % 10]}{'abcdefghij'[i // 10 % 10]}{'abcdefghij'[i // 100]}" for i in range(1000)], args.work / "many.hlo")])
    page = browser.open(url)
    assert "1000 of 1000 layers" in page.locator("#shown").inner_text()
    first = len(layers(page))
    assert first <= 200, first
    page.locator(ROWS).last.scroll_into_view_if_needed()
    wait(page, lambda: len(layers(page)) > first)
    page.goto(url + "#open=g700")
    page.reload()
    assert page.locator("#g700").is_visible() and page.locator("tr.matmul").count() == 1
    browser.close(page)


def check_baseline(browser, args, modules, remarks):
    """Changes of a baseline: FP8 matmuls become wide and conversely, one is renamed."""
    old = json.loads(json.dumps(remarks))
    dots = [dot for dot in old["dots"] if sum(other["op_name"] == dot["op_name"] for other in old["dots"]) == 1 and not dot["quantized"]]
    fp8, wide = ([dot for dot in dots if (dot["verdict"] == "wide") == is_wide] for is_wide in (False, True))
    for dot in fp8[:3]:
        dot["verdict"] = "wide"
    for dot in wide[:2]:
        dot["verdict"] = "fp8"
    fp8[3]["op_name"] = "removed/<b>"
    old["summary"]["fp8"] -= 1
    old["summary"]["seconds"] *= 2
    path = args.work / "old.json"
    path.write_text(json.dumps(old))
    url, _ = page_of(args, "baseline", modules, f"--baseline={path}")
    page = browser.open(url)
    facts = page.locator("h2:has-text('baseline') ~ ul.facts").first.locator("li").all_inner_texts()
    assert [" ".join(fact.split()) for fact in facts] == ["3 newly FP8", "2 lost FP8", "1 new", "1 gone"], facts
    page.locator("#gone summary").click()
    assert page.locator("#gone tr").all_inner_texts() == [f"fp8\tremoved/<b>\t{fp8[3]['input_shape']}"]
    for change, count in (("newly FP8", 3), ("lost FP8", 2), ("new", 1)):
        page.locator(f"ul.facts a:text-is('{change}')").click()
        wait(page, lambda change=change: page.locator("[name=change]").input_value() == change)
        assert f" {count} of " in page.locator("#shown").inner_text(), page.locator("#shown").inner_text()
    page.locator(ROWS).first.locator("button").click()
    assert "new" in page.locator("tr.matmul").first.inner_text()
    browser.close(page, "baseline")


def check_folder(browser, args):
    """The page of a dump folder has a bar for each layer, with a part for each run of stages with one verdict."""
    folder, path = args.models.parent / "tool" / "dump", args.work / "folder.html"
    subprocess.run([args.bin / "hlo-fp8-opt", f"--report={path}", folder], check=True, capture_output=True)
    page = browser.open(path.as_uri())
    page.locator("ul.facts a:text-is('lost FP8 between stages')").click()
    assert page.locator("#stages").is_visible()
    wait(page, lambda: page.evaluate("document.getElementById('stages').getBoundingClientRect().top") < 100)
    bars = page.locator("table.stages tbody tr, table.stages > tr")
    assert bars.count() == 5, bars.count()
    assert page.locator("table.stages rect").evaluate_all("all => all.map(e => e.getAttribute('class') + e.getAttribute('width'))") == [
        "fp81", "wide3", "fp81", "fp82", "wide2", "fp83", "wide1", "wide4"]
    width, stages = page.locator("table.stages svg").first.bounding_box()["width"], 4
    assert abs(page.locator("table.stages rect").first.bounding_box()["width"] - width / stages) < 2
    page.locator("table.stages a:text-is('not-quantized')").click()
    page.wait_for_selector("#edit-not-quantized[open]")
    browser.close(page, "folder")
    page = browser.open(path.as_uri() + "#stages", viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    browser.close(page)


def main():
    args = _script.parser(pathlib.Path).parse_args()
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        print("no browser: Chromium is not installed")
        return 77
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError as error:
        print(f"no browser: {error}")
        return 77
    args.work = args.work.resolve()
    models = sorted(p for p in args.models.glob("*.hlo") if p.name.count(".") == 1)
    url, remarks = page_of(args, "models", models)
    with sync_playwright() as playwright:
        browser = Browser(playwright, program, args.work)
        check_order(browser, url, remarks)
        check_filters(browser, url, remarks)
        check_rows(browser, url)
        check_first_edit(browser, args)
        check_links(browser, url)
        check_colors(browser, url)
        check_print(browser, url, remarks)
        check_phone(browser, url)
        check_without_script(browser, url, remarks)
        check_names(browser, args)
        check_many(browser, args)
        check_baseline(browser, args, models, remarks)
        check_folder(browser, args)
        browser.browser.close()
    print(f"{len(remarks['groups'])} layers, {len(remarks['dots'])} matmuls; screenshots in {args.work}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
