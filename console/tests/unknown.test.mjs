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

const CHECKOUT = "/autoscalers/shop/hpa/checkout";

test("object that cannot be read is said to be unknown, with the cause, and read again", () =>
  on({}, async (page, mock) => {
    await page.waitForSelector("a.name");
    mock.state.error = { path: "/checkout", code: 503, message: "the server is currently unable to handle the request" };
    await page.click("a.name:text-is('shop/checkout')");
    await page.waitForSelector(".sentence:text-is('Not known: the object could not be read yet.')");
    await page.waitForSelector(".mark-row");
    assert.match(await page.locator(".note").textContent(), /unable to handle the request/, "the history, which can be read, does not hide the error");
    mock.state.error = null;
    await page.waitForSelector(".note", { state: "hidden" });
    await page.waitForSelector(".sentence:has-text('scaled')");
  }));

test("longer range that cannot be read shows no other chart, and the object is not called gone", () =>
  on({}, async (page, mock) => {
    await page.waitForSelector(".mark-row");
    mock.state.error = { path: "/history", code: 404, message: 'services "prometheus" not found' };
    await page.click(".ranges button:text('7 days')");
    await page.waitForSelector(".note:has-text('services \"prometheus\" not found')");
    assert.equal(await page.locator("text=does not exist").count(), 0);
    assert.equal(await page.locator(".charts canvas").count(), 1, "no metrics are known");
  }, CHECKOUT));

test("ages grow while nothing else changes", async () => {
  await on({}, async (page, mock) => {
    await page.waitForSelector("dd:has-text('6m ago')");
    const time = await page.locator("dd time >> nth=0").getAttribute("title");
    assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*Z$/);
    mock.push({ at: Date.now() / 1000 + 600 });
    await page.waitForSelector("dd:has-text('16m ago')");
  }, "/problems");
  await on({}, async (page, mock) => {
    await page.waitForSelector("[aria-label=events] td:has-text('5m ×3')");
    mock.push({ at: Date.now() / 1000 + 600 });
    await page.waitForSelector("[aria-label=events] td:has-text('15m ×3')");
    await page.waitForSelector("[aria-label=conditions] td:has-text('25m')");
  }, CHECKOUT);
});

test("link to a decision that is not kept any more says so", () =>
  on({}, async (page) => {
    await page.waitForSelector(".note:has-text('The decision at 2026-01-05 09:15:00 UTC is not kept: the latest is shown.')");
    await page.click(".mark-row >> nth=0");
    await page.waitForSelector(".note", { state: "hidden" });
  }, `${CHECKOUT}?at=1767604500`));

test("link to a time that no date can carry shows the latest decision", () =>
  on({}, async (page) => {
    await page.waitForSelector(".mark-row");
    await page.click(".mark-row >> nth=0");
    await page.waitForSelector("#why:has-text('Why, at ')");
    assert.equal(await page.locator(".note").isHidden(), true);
  }, `${CHECKOUT}?at=1e300`));

test("fault and patch that fail say so", () =>
  on({}, async (page, mock) => {
    await page.waitForSelector(".lab .fault");
    mock.state.error = { path: "lab", code: 500, message: "the node is gone" };
    await page.click("text=metrics outage");
    await page.waitForSelector(".lab [role=alert]:has-text('Not changed: the node is gone')");
    mock.state.error = null;
    await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: { writeText: () => Promise.reject(new Error("refused")) } }));
    await page.click(".whatif summary");
    await page.fill(".fields label:first-child input", "40");
    await page.click("button:text('copy as patch')");
    await page.waitForSelector("button:text('selected: press Ctrl-C')");
    assert.match(await page.evaluate(() => String(getSelection())), /^spec:/);
  }, CHECKOUT));
