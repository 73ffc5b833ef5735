// The console of a running `plimsoll up`, in a real Chromium. PLIMSOLL names the binary.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { launch, open } from "./browser.mjs";

const PATIENCE_MS = 90_000;
let folder, up, url, browser;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "plimsoll-console-"));
  up = spawn(process.env.PLIMSOLL, ["up", "--kubeconfig", join(folder, "kubeconfig")], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: up.stdout })) {
    url = /console\s+(http\S+)/.exec(line)?.[1];
    if (url) break;
  }
  assert.ok(url, "up prints the address of the console");
  up.stdout.resume();
  browser = await launch();
});

after(async () => {
  await browser?.close();
  up?.kill("SIGINT");
  await rm(folder, { recursive: true, force: true });
});

test("without the token nothing is shown", async () => {
  const { page, close } = await open(browser, new URL("/", url).href);
  await page.waitForSelector(".live.expired");
  assert.equal(await page.locator("a.name").count(), 0);
  await close();
});

test("list, chart, why, what if and faults of a live cluster", { timeout: 3 * PATIENCE_MS }, async () => {
  const { page, errors, close } = await open(browser, url);
  page.setDefaultTimeout(PATIENCE_MS);
  await page.waitForSelector("a.name:text-is('default/php-apache')");
  assert.ok(!page.url().includes("token"), page.url());
  await page.waitForSelector("a.name:text-is('default/so/orders-worker')");
  await page.fill(".lab input[type=range] >> nth=0", "40");
  await page.waitForSelector(".lab .manual");
  await page.click("a.name:text-is('default/php-apache')");
  await page.waitForSelector(".mark-row.changed");
  await page.click(".mark-row.changed >> nth=0");
  await page.waitForFunction(() => document.querySelector("#why")?.textContent?.startsWith("Why, at"));
  await page.waitForSelector(".why dd");
  assert.equal(await page.locator(".charts canvas").count() >= 2, true);
  await page.click(".whatif summary");
  await page.fill(".fields label:first-child input", "25");
  await page.waitForSelector(".whatif .patch:visible");
  assert.match(await page.locator(".patch").textContent(), /averageUtilization: 25/);
  await page.click("text=metrics outage");
  await page.waitForSelector(".fault.active");
  await page.waitForSelector(".sentence.failing");
  await page.keyboard.press("Escape");
  await page.click("nav a:has-text('Problems')");
  await page.waitForSelector(".problem.failing");
  await page.click("text=metrics outage");
  await page.waitForSelector(".empty:has-text('No problems')");
  assert.deepEqual(errors, []);
  await close();
});
