// Debian's Chromium, driven by playwright-core.
import { chromium } from "playwright-core";

/** Everything here is done in much less, unless something hangs; machines that run all tests at once are slow. */
export const PATIENCE_MS = 120_000;

export function launch(...flags) {
  const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", ...flags];
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args, timeout: PATIENCE_MS });
}

/** A page that fails the test on errors of scripts, violations of the policy, and requests to other hosts. */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !/status of (401|404|500|503)|net::ERR_(?!BLOCKED)/.test(message.text())) errors.push(message.text());
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(new URL(url).origin) && !request.url().startsWith("data:")) errors.push(`request to ${request.url()}`);
  });
  await page.goto(url);
  return { page, errors, close: () => context.close() };
}
