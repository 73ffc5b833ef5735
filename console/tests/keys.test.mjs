// Keys, focus, and ways back.
import assert from "node:assert/strict";
import { test } from "node:test";
import { row } from "./mock.mjs";
import { on } from "./on.mjs";

const names = (page) => page.locator("a.name").allTextContents();
const focused = (page) => page.evaluate(() => document.activeElement?.textContent);
const many = Array.from({ length: 400 }, (_, i) => row(`web/hpa/w${String(i).padStart(3, "0")}`));

test("Enter follows the link that has the focus, not the row of the cursor", () =>
  on({}, async (page) => {
    await page.waitForSelector("a.name");
    await page.focus("nav a:has-text('Problems')");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/problems$/);
    await page.goBack();
    await page.waitForSelector("a.name");
    await page.focus("a.name >> nth=2");
    assert.equal(await focused(page), "shop/checkout");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/autoscalers\/shop\/hpa\/checkout$/);
  }));

test("focus stays on its row when others come before it", () =>
  on({ rows: [row("web/hpa/b"), row("web/hpa/c")] }, async (page, mock) => {
    await page.waitForSelector("a.name");
    await page.keyboard.press("j");
    assert.equal(await focused(page), "web/c");
    mock.push({ rows: [row("web/hpa/a")] });
    await page.waitForSelector("a.name:text-is('web/a')");
    assert.equal(await focused(page), "web/c");
    assert.equal(await page.locator(".line.selected a.name").textContent(), "web/c");
  }));

test("way back from an autoscaler leads to the same part of the same list", () =>
  on({ rows: many }, async (page) => {
    for (const back of [() => page.keyboard.press("Escape"), () => page.goBack()]) {
      await page.goto(new URL("/?q=web&sort=name", page.url()).href);
      await page.waitForSelector("a.name");
      await page.keyboard.press("G");
      await page.waitForSelector("a.name:text-is('web/w399')");
      await page.keyboard.press("Enter");
      await page.waitForURL(/w399$/);
      await page.waitForSelector(".mark-row");
      await back();
      await page.waitForURL(/\/\?q=web&sort=name$/);
      await page.waitForSelector(".line.selected a.name:text-is('web/w399')");
      assert.equal(await page.inputValue("input[type=search]"), "web");
    }
    await page.click("nav a:has-text('All')");
    await page.waitForSelector(".line.selected a.name:text-is('web/w000')");
  }));

test("Esc leaves Problems and Sources for the list", () =>
  on({}, async (page) => {
    for (const path of ["/problems", "/sources"]) {
      await page.goto(new URL(path, page.url()).href);
      await page.waitForSelector("main");
      await page.keyboard.press("Escape");
      await page.waitForURL(/\/$/);
      await page.waitForSelector("a.name");
    }
  }));

test("keys scroll a page as soon as it is open, and wide tables and YAML by arrows", () =>
  on({ browser: { viewport: { width: 600, height: 500 } } }, async (page) => {
    await page.waitForSelector(".mark-row");
    await page.keyboard.press("PageDown");
    await page.waitForFunction(() => document.querySelector(".place").scrollTop > 0);
    await page.focus("[aria-label=events]");
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction(() => document.querySelector("[aria-label=events]").scrollLeft > 0);
    assert.equal(await page.locator(".mark-row.selected").count(), 0);
  }, "/autoscalers/shop/hpa/checkout"));

test("link of a problem keeps the focus when the problem changes", () =>
  on({ rows: [row("web/hpa/a", { state: "failing" }), row("web/hpa/b", { state: "failing" })] }, async (page, mock) => {
    await page.focus(".names a:has-text('web/hpa/b')");
    const problem = { cause: "http_requests cannot be read", effect: "hold", detail: "another error", remedy: "check that prometheus:9090 answers and that a rule names http_requests", risk: "", state: "failing", since: null, autoscalers: ["web/hpa/a", "web/hpa/b", "web/hpa/c"] };
    mock.push({ problems: [problem] });
    await page.waitForSelector(".names a:has-text('web/hpa/c')");
    assert.equal(await focused(page), "web/hpa/b");
  }, "/problems"));

test("chosen namespace stays when namespaces come and go, also without autoscalers", () =>
  on({ rows: [row("shop/hpa/a"), row("web/hpa/b")] }, async (page, mock) => {
    const chosen = () => page.inputValue("select[aria-label=namespace]");
    await page.waitForSelector("a.name");
    await page.selectOption("select[aria-label=namespace]", "");
    mock.push({ rows: [row("new/hpa/c")] });
    await page.waitForSelector("option[value=new]", { state: "attached" });
    assert.deepEqual([await chosen(), (await names(page)).length], ["", 3], "the address that the page was opened with does not count any more");
    await page.selectOption("select[aria-label=namespace]", "new");
    mock.push({ removed: ["new/hpa/c"] });
    await page.waitForSelector("text=Nothing matches. Esc clears search and filters.");
    assert.equal(await chosen(), "new");
    await page.reload();
    await page.waitForSelector("text=Nothing matches.");
    assert.equal(await chosen(), "new");
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.querySelectorAll("a.name").length === 2);
    await page.waitForURL(/\/$/);
  }, "/?namespace=web"));

test("link that was cut off opens a page", () =>
  on({}, async (page) => {
    await page.waitForSelector("text=does not exist, or not any more");
  }, "/autoscalers/shop/hpa/check%E0%A4"));

test("dialog of keys is closed by its button", () =>
  on({}, async (page) => {
    await page.waitForSelector("a.name");
    await page.keyboard.press("?");
    await page.click("dialog button");
    await page.waitForSelector("dialog", { state: "hidden" });
  }));
