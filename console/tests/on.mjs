// Runs a test on a page of the frontend, against a fresh server of mock.mjs.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { launch, open } from "./browser.mjs";
import { start } from "./mock.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

/** Runs a test on a fresh server and page, and fails on errors of the page. */
export async function on(options, check, path = "/") {
  const mock = await start(options);
  const { page, errors, close } = await open(browser, mock.url + path, options.browser);
  try {
    await check(page, mock);
    assert.deepEqual(errors, []);
  } finally {
    await close();
    await mock.stop();
  }
}
