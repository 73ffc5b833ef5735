// The console of a running `plimsoll up`, in a real Chromium. PLIMSOLL names the binary.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { PATIENCE_MS, launch, open } from "./browser.mjs";

let folder, up, browser;

/** Starts a command that serves a console; `url` is the printed address. */
async function serve(...words) {
  const child = spawn(process.env.PLIMSOLL, words, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((done) => child.on("exit", done));
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /console\s+(http\S+)/.exec(line)?.[1];
    if (!url) continue;
    child.stdout.resume();
    return { url, stop: () => (child.kill("SIGINT"), ended) };
  }
  assert.fail(`${words[0]} prints the address of the console`);
}

const start = () => serve("up", "--kubeconfig", join(folder, "kubeconfig"));

/** Sends a request to the API server of the kubeconfig. */
async function kube(method, path) {
  const text = await readFile(join(folder, "kubeconfig"), "utf8");
  const field = (name) => new RegExp(`${name}: *"?([^\\s"]+)`).exec(text)?.[1];
  const pem = (name) => Buffer.from(field(name) ?? "", "base64");
  const options = { method, ca: pem("certificate-authority-data"), cert: pem("client-certificate-data"), key: pem("client-key-data") };
  return new Promise((done, failed) => {
    const sent = request(field("server") + path, options, (answer) => answer.resume().on("end", () => done(answer.statusCode)));
    sent.on("error", failed).end();
  });
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "plimsoll-console-"));
  up = await start();
  // A site whose name leads to this machine, as in DNS rebinding.
  browser = await launch("--host-resolver-rules=MAP evil.example 127.0.0.1");
});

after(async () => {
  await browser?.close();
  await up?.stop();
  await rm(folder, { recursive: true, force: true });
});

test("without the token, or with a wrong one, nothing is shown", async () => {
  for (const path of ["/", "/?token=0123456789abcdef"]) {
    const { page, close } = await open(browser, new URL(path, up.url).href);
    await page.waitForSelector(".live.expired");
    assert.equal(await page.locator("a.name").count(), 0);
    await close();
  }
});

test("other sites get nothing, also with the session's cookie", async () => {
  const { page, close } = await open(browser, up.url);
  await page.waitForSelector("a.name");
  const statuses = [];
  page.on("response", (response) => new URL(response.url()).hostname === "evil.example" && statuses.push(response.status()));
  const rebound = new URL(up.url);
  rebound.hostname = "evil.example";
  await page.goto(rebound.href);
  assert.deepEqual(statuses, [421], "the name of another site");
  // Another port of this machine is another origin of the same site.
  const site = createServer((_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>other</p>"));
  await new Promise((done) => site.listen(0, "127.0.0.1", done));
  await page.goto(`http://127.0.0.1:${site.address().port}/`);
  for (const [path, body] of [["/api/v1/autoscalers/default/hpa/php-apache"], ["/api/v1/lab", JSON.stringify({ fault: "metrics", active: true })]]) {
    const send = ([url, text]) => fetch(url, { method: text ? "POST" : "GET", mode: "no-cors", credentials: "include", body: text }).then(() => "answered", () => "refused");
    assert.equal(await page.evaluate(send, [new URL(path, up.url).href, body]), "refused", path);
  }
  await page.goto(up.url);
  await page.waitForSelector(".fault");
  assert.equal(await page.locator(".fault.active").count(), 0);
  await new Promise((done) => site.close(done));
  await close();
});

test("list, chart, why, what if and faults of a live cluster", { timeout: 5 * PATIENCE_MS }, async () => {
  const { page, errors, close } = await open(browser, up.url);
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
  assert.equal((await page.locator(".charts canvas").count()) >= 2, true);
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

test("object that is deleted while it is open is said to be gone", async () => {
  const { page, errors, close } = await open(browser, up.url);
  await page.click("a.name:text-is('default/php-apache')");
  await page.waitForSelector(".sentence");
  const path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/php-apache";
  assert.equal(await kube("DELETE", path), 200);
  await page.waitForSelector("text=does not exist, or not any more");
  assert.deepEqual(errors, []);
  await close();
});

test("console beside up shows the same list, and its page says when it is gone", async () => {
  const words = ["console", "--no-browser", "--port", "0", "--kubeconfig", join(folder, "kubeconfig")];
  const beside = await serve(...words);
  const { page, close } = await open(browser, beside.url);
  await page.waitForSelector("a.name:text-is('default/so/orders-worker')");
  const port = new URL(beside.url).port;
  await beside.stop();
  await page.waitForSelector(".live.lost");
  // Another process has another session: the page says so, and the new address works.
  const again = await serve(...words.with(words.indexOf("0"), port));
  await page.waitForSelector(".live.expired");
  await page.goto(again.url);
  await page.waitForSelector("a.name:text-is('default/so/orders-worker')");
  await close();
  await again.stop();
});
