// What is not known, or not known any more, is never shown as zero, as nothing or as present.
import assert from "node:assert/strict";
import { test } from "node:test";
import { row } from "./mock.mjs";
import { on } from "./on.mjs";

const ERROR = { text: "cannot reach the cluster at https://10.0.0.1:6443: connection refused", remedy: "the console tries again" };

test("list that could not be read yet is not called empty, and has no problems that are known", () =>
  on({ rows: [], isRead: false, notes: [ERROR] }, async (page, mock) => {
    for (const path of ["/", "/problems", "/autoscalers/shop/hpa/checkout"]) {
      await page.goto(new URL(path, page.url()).href);
      await page.waitForSelector(".live.live");
      await page.waitForSelector(".notes:has-text('connection refused')");
      const text = await page.locator("body").innerText();
      assert.doesNotMatch(text, /All 0|No problems|No autoscalers/, path);
      if (!path.startsWith("/autoscalers")) assert.match(text, /Not known: the autoscalers could not be read yet/, path);
    }
    await page.goto(mock.url);
    await page.waitForSelector(".notes:has-text('connection refused')");
    mock.push({ problems: [], notes: [] });
    await page.waitForSelector("text=No autoscalers in what you may see");
    assert.match(await page.locator("nav").textContent(), /All 0/);
    await page.keyboard.press("p");
    await page.waitForSelector("text=No problems.");
  }));

test("lost connection is named with the time of what is shown, and the remedy", () =>
  on({ rows: [row("shop/hpa/checkout")] }, async (page, mock) => {
    await page.waitForSelector("a.name");
    await mock.stop();
    await page.waitForSelector(".notes:has-text('the console does not answer')");
    assert.match(await page.locator(".notes").textContent(), /^What is shown is from \d\d:\d\d:\d\d UTC: .* remedy: see whether/);
  }));

test("decision whose count could not be read shows no count, and has its mark at the top of the chart", () =>
  on({}, async (page, mock) => {
    await page.waitForSelector(".mark-row");
    const t = Math.floor(Date.now() / 15_000) * 15 - 450;
    mock.state.news = { marks: [{ t, until: t, times: 1, from: null, to: null, changed: false, failed: true, sentence: "held: the scale cannot be read" }] };
    await page.waitForSelector(".mark-row:has-text('the scale cannot be read')");
    assert.equal(await page.locator(".mark-row:has-text('the scale cannot be read') .n").textContent(), "?");
    // Other failures of the mock are in the lower half.
    const isRedAtTop = () => {
      const canvas = document.querySelector(".charts canvas");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, 24);
      return data.some((red, at) => at % 4 === 0 && red > 150 && data[at + 1] < 80 && data[at + 2] < 80);
    };
    await page.waitForFunction(isRedAtTop);
  }, "/autoscalers/shop/hpa/checkout"));
