// Debian's Chromium, driven by playwright-core.
import { chromium } from "playwright-core";

export function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
}

/** A page that fails the test on errors of scripts, violations of the policy, and requests to other hosts. */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !/status of (401|404)|ERR_(CONNECTION|INCOMPLETE|EMPTY)/.test(message.text())) errors.push(message.text());
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(new URL(url).origin) && !request.url().startsWith("data:")) errors.push(`request to ${request.url()}`);
  });
  await page.goto(url);
  return { page, errors, close: () => context.close() };
}
