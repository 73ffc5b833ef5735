// The frontend in a real Chromium, against a server with the same API (mock.mjs).
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { row, start } from "./mock.mjs";
import { on } from "./on.mjs";

const names = (page) => page.locator("a.name").allTextContents();

test("list is searched, filtered, sorted and kept in the address", () =>
  on({}, async (page) => {
    await page.waitForSelector("a.name");
    assert.equal((await names(page))[0], "web/frontend", "what needs attention comes first");
    await page.keyboard.press("/");
    await page.keyboard.type("queue");
    await page.waitForFunction(() => document.querySelectorAll("a.name").length === 1);
    assert.deepEqual(await names(page), ["shop/so/orders-worker"]);
    await page.waitForURL(/\?q=queue$/);
    await page.reload();
    await page.waitForFunction(() => document.querySelectorAll("a.name").length === 1);
    await page.keyboard.press("/");
    await page.keyboard.press("Escape");
    await page.selectOption("select[aria-label=namespace]", "web");
    await page.waitForFunction(() => document.querySelectorAll("a.name").length === 2);
    await page.selectOption("select[aria-label=state]", "atMax");
    await page.waitForFunction(() => document.querySelectorAll("a.name").length === 1);
    await page.waitForURL(/namespace=web&state=atMax/);
    await page.selectOption("select[aria-label=state]", "");
    await page.selectOption("select[aria-label=namespace]", "");
    await page.click("button.sort:text('Name')");
    await page.waitForFunction(() => document.querySelector("a.name")?.textContent === "batch/autoscaler/render");
  }));

test("keyboard alone opens an autoscaler, its decisions and the list again", () =>
  on({}, async (page) => {
    await page.waitForSelector("a.name");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/autoscalers\/web\/hpa\/search$/);
    await page.waitForSelector(".mark-row");
    await page.keyboard.press("j");
    await page.waitForSelector(".mark-row.selected");
    await page.waitForFunction(() => document.querySelector("#why")?.textContent?.startsWith("Why, at"));
    await page.waitForURL(/\?at=/);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await page.waitForURL(/\/$/);
    await page.keyboard.press("?");
    await page.waitForSelector("dialog[open]");
    await page.keyboard.press("Escape");
    await page.keyboard.press("p");
    await page.waitForURL(/\/problems$/);
    await page.goBack();
    await page.waitForSelector("a.name");
  }));

test("chart shows why at the decision under the cursor", () =>
  on({}, async (page) => {
    await page.waitForSelector(".mark-row");
    assert.equal(await page.locator(".charts canvas").count(), 2);
    await page.waitForSelector("text=held by a stabilization window");
    assert.equal(await page.locator(".one > .target a").getAttribute("href"), "/?q=Deployment%2Fcheckout");
    await page.hover(".charts .u-over >> nth=0", { position: { x: 300, y: 50 } });
    await page.waitForFunction(() => document.querySelector("#why")?.textContent?.startsWith("Why, at"));
    await page.waitForSelector(".why .decided");
  }, "/autoscalers/shop/hpa/checkout"));

test("history continues with what is new", () =>
  on({}, async (page, mock) => {
    await page.waitForSelector(".mark-row");
    const shown = await page.locator(".mark-row").count();
    const t = Math.floor(Date.now() / 1000) + 60;
    mock.state.news = { marks: [{ t, until: t, times: 1, from: 4, to: 5, changed: true, failed: false, sentence: "cpu 99 % of 60 %" }], continued: { times: 3, until: t - 15 } };
    await page.waitForSelector(".mark-row:has-text('cpu 99 % of 60 %')");
    assert.equal(await page.locator(".mark-row").count(), shown + 1);
    assert.match(await page.locator(".mark-row >> nth=1").textContent(), / ×4$/);
  }, "/autoscalers/shop/hpa/checkout"));

test("longer ranges come from Prometheus, where there is one", () =>
  on({}, async (page) => {
    await page.waitForSelector(".mark-row");
    const count = await page.locator(".mark-row").count();
    await page.click(".ranges button:text('7 days')");
    await page.waitForSelector("text=From Prometheus prometheus:9090");
    assert.equal(await page.locator(".ranges [aria-pressed=true]").textContent(), "7 days");
    assert.equal(await page.locator(".mark-row").count(), count, "decisions stay those that are recorded");
    await page.click(".ranges button:text('recorded')");
    await page.waitForSelector(".note", { state: "hidden" });
  }, "/autoscalers/shop/hpa/checkout"));

test("what if changes the curve and offers a patch", () =>
  on({}, async (page) => {
    await page.click(".whatif summary");
    await page.fill(".fields label:first-child input", "40");
    await page.waitForSelector(".whatif canvas");
    assert.match(await page.locator(".answer").textContent(), /1.8 pod-hours fewer.*10 changes instead of 14/);
    assert.match(await page.locator(".patch").textContent(), /^spec:/);
    assert.match(await page.locator(".whatif .dim >> nth=-1").textContent(), /Modelled: /);
  }, "/autoscalers/shop/hpa/checkout"));

test("what if has the policies of both directions as fields", () =>
  on({}, async (page) => {
    await page.click(".whatif summary");
    const down = page.locator("fieldset", { hasText: "scale down" });
    await down.locator("button:text('add policy')").click();
    await down.locator(".policies .policy >> nth=1").locator("input >> nth=1").fill("120");
    await down.locator(".policies .policy >> nth=0").locator("button").click();
    await down.locator("select >> nth=0").selectOption("min");
    // The mock shows what it was asked.
    const asked = JSON.stringify({ down: { window: 300, select: "min", policies: [{ kind: "pods", value: 1, period: 120 }] } }).slice(1);
    await page.waitForFunction((text) => document.querySelector(".patch")?.textContent?.includes(text), asked);
  }, "/autoscalers/shop/hpa/checkout"));

test("problems are grouped by cause and lead to their autoscalers", () => {
  const rows = Array.from({ length: 41 }, (_, i) => row(`web/hpa/w${i}`, { state: "failing", pressure: null }));
  return on({ rows }, async (page) => {
    await page.waitForSelector(".problem");
    assert.match(await page.locator(".problem h2").textContent(), /http_requests cannot be read: 41 autoscalers hold/);
    assert.equal(await page.locator(".names a").count(), 12);
    await page.click(".names button");
    assert.equal(await page.locator(".names a").count(), 41);
    await page.click(".names a >> nth=0");
    await page.waitForURL(/\/autoscalers\/web\/hpa\/w0$/);
    await page.keyboard.press("s");
    await page.waitForSelector(".sources .failing");
  }, "/problems");
});

test("fault buttons and load sliders of up send their change", () =>
  on({}, async (page, mock) => {
    await page.click("text=metrics outage");
    await page.waitForSelector(".fault.active");
    assert.equal(mock.state.lab.faults[0].active, true);
    await page.fill(".lab input[type=range]", "10");
    await page.waitForSelector(".lab .manual");
    assert.equal(mock.state.lab.loads[0].value, 10);
  }));

test("live changes arrive, and the page reconnects after a restart", () =>
  on({}, async (page, mock) => {
    await page.waitForSelector("a.name");
    mock.push({ rows: [{ id: "shop/hpa/checkout", replicas: 11, desired: 11 }] });
    await page.waitForSelector("text=11 of 2–20");
    await mock.stop();
    await page.waitForSelector(".live.lost");
    const again = await start({ port: mock.port, rows: [row("shop/hpa/new")] });
    try {
      await page.waitForFunction(() => document.querySelector("a.name")?.textContent === "shop/new");
      assert.notEqual(again.state.resumed[0], null, "the browser says which event it saw last");
    } finally {
      await again.stop();
    }
  }));

test("recording is called a recording", () =>
  on({ recording: true }, async (page) => {
    await page.waitForSelector("text=This is a recording");
    assert.equal(await page.locator(".live").textContent(), "■ recording");
  }));

test("what the user may not see is said with its remedy", () => {
  const notes = [{ text: "you may not list horizontalpodautoscalers of all namespaces; shown: shop", remedy: "ask for the right to list them" }];
  return on({ rows: [row("shop/hpa/checkout")], notes }, async (page, mock) => {
    await page.waitForSelector("a.name");
    assert.match(await page.locator(".notes").textContent(), /all namespaces; shown: shop remedy: ask for the right/);
    mock.push({ notes: [] });
    await page.waitForSelector(".notes p", { state: "detached" });
  });
});

test("expired session is explained", () =>
  on({}, async (page, mock) => {
    await page.waitForSelector("a.name");
    mock.state.valid = false;
    for (const client of mock.state.clients) client.destroy();
    await page.waitForSelector(".live.expired");
    assert.match(await page.locator(".notes").textContent(), /plimsoll console/);
  }));

test("YAML stays open and focused when the object changes", () =>
  on({}, async (page, mock) => {
    // The object is read again when the list arrives: a key opens the YAML also if it is replaced meanwhile, a click might not.
    await page.focus("summary:text-is('YAML')");
    await page.keyboard.press("Enter");
    await page.waitForSelector("details[open] pre:has-text('kind: HorizontalPodAutoscaler')");
    await page.evaluate(() => document.querySelector("details[open] pre")?.setAttribute("data-old", ""));
    mock.push({ rows: [{ ...row("shop/hpa/checkout"), replicas: 11, steps: undefined }] });
    await page.waitForSelector("pre[data-old]", { state: "detached" });
    assert.equal(await page.locator("details[open] pre", { hasText: "kind: HorizontalPodAutoscaler" }).count(), 1);
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), "YAML");
  }, "/autoscalers/shop/hpa/checkout"));

test("object that is deleted while it is open is said to be gone", () =>
  on({}, async (page, mock) => {
    await page.waitForSelector(".mark-row");
    mock.state.rows = mock.state.rows.filter((one) => one.name !== "checkout");
    mock.push({ removed: ["shop/hpa/checkout"] });
    await page.waitForSelector("text=does not exist, or not any more");
  }, "/autoscalers/shop/hpa/checkout"));

test("hostile texts of the cluster are text on every page and keep the layout", () =>
  on({ hostile: true }, async (page) => {
    for (const [path, shown] of [["/", "a.name"], ["/problems", ".problem"], ["/sources", ".sources tbody tr"], ["/autoscalers/shop/hpa/checkout", ".mark-row"]]) {
      await page.goto(new URL(path, page.url()).href);
      await page.waitForSelector(shown);
      assert.match(await page.locator(".place").textContent(), /onerror=/, path);
      if (path.startsWith("/autoscalers")) {
        await page.click(".whatif summary");
        await page.fill(".fields label:first-child input", "40");
        await page.waitForSelector(".whatif .patch:visible");
        await page.click(".mark-row >> nth=0");
        await page.waitForFunction(() => document.querySelector("#why")?.textContent?.startsWith("Why, at"));
      }
      assert.equal(await page.locator("body img, body script").count(), 0, path);
      assert.notEqual(await page.title(), "owned");
      const width = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(width[0] <= width[1], `${path}: ${width}`);
    }
  }));

test("10,000 rows: only visible ones are in the document", () => {
  const rows = Array.from({ length: 10_000 }, (_, i) => row(`n${i % 100}/hpa/service-${i}`));
  return on({ rows }, async (page, mock) => {
    await page.waitForSelector("a.name");
    assert.ok((await page.locator("a.name").count()) < 100);
    assert.match(await page.locator("nav").textContent(), /All 10,000/);
    await page.keyboard.press("G");
    await page.waitForSelector("a.name:text-is('n99/service-9999')");
    mock.push({ rows: rows.slice(0, 500).map((one) => ({ ...one, replicas: 12 })) });
    await page.keyboard.press("/");
    await page.keyboard.type("service-1234");
    await page.waitForFunction(() => document.querySelectorAll("a.name").length === 1);
  });
});

test("rows that change, come and go keep the order", async () => {
  const states = ["failing", "atMax", "partial", "fine", "paused"];
  const changed = (i, turn) => row(`n${i % 4}/hpa/service-${i}`, { state: states[(i * 3 + turn) % 5], pressure: ((i * 7 + turn * 5) % 20) / 10, replicas: (i + turn) % 9 });
  for (const path of ["/", "/?sort=-replicas", "/?sort=target&q=n1"]) {
    const rows = Array.from({ length: 60 }, (_, i) => changed(i, 0));
    await on({ rows, browser: { viewport: { width: 1280, height: 2400 } } }, async (page, mock) => {
      await page.waitForSelector("a.name");
      for (let turn = 1; turn < 5; turn += 1) {
        const news = [row(`n1/hpa/new-${turn}`, { replicas: turn }), ...rows.filter((_, i) => i % 3 === turn % 3).map((one) => changed(Number(one.name.split("-")[1]), turn))];
        const removed = [`n1/hpa/service-${turn * 4 + 1}`, `n2/hpa/service-${turn * 4 + 2}`];
        const known = new Map([...mock.state.rows, ...news].map((one) => [one.id, one]));
        for (const id of removed) known.delete(id);
        mock.state.rows = [...known.values()];
        mock.push({ rows: news, removed });
      }
      await page.waitForSelector("a.name:text-is('n1/new-4')");
      const live = await names(page);
      await page.reload();
      await page.waitForSelector("a.name:text-is('n1/new-4')");
      assert.deepEqual(live, await names(page), path);
    }, path);
  }
});

test("no serious accessibility finding", async () => {
  const axe = await readFile(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
  for (const path of ["/", "/problems", "/sources", "/autoscalers/shop/hpa/checkout"]) {
    for (const [colorScheme, viewport] of [["light", { width: 1280, height: 720 }], ["dark", { width: 390, height: 844 }]]) {
      await on({ browser: { colorScheme, viewport, bypassCSP: true } }, async (page) => {
        await page.waitForSelector("a.name, .problem, .sources tbody tr, .mark-row");
        if (path.startsWith("/autoscalers")) {
          await page.click(".whatif summary");
          await page.fill(".fields label:first-child input", "40");
          await page.waitForSelector(".whatif .patch:visible");
        }
        await page.evaluate(axe);
        const found = await page.evaluate(() => globalThis.axe.run());
        const serious = found.violations.filter((one) => ["serious", "critical"].includes(one.impact));
        assert.deepEqual(serious.map((one) => [path, colorScheme, one.id, one.nodes.map((node) => node.html.slice(0, 120))]), []);
      }, path);
    }
  }
});

test("phone width has no horizontal scrolling", () =>
  on({ browser: { viewport: { width: 390, height: 844 } } }, async (page) => {
    for (const path of ["/", "/problems", "/sources", "/autoscalers/shop/hpa/checkout"]) {
      await page.goto(new URL(path, page.url()).href);
      await page.waitForSelector("a.name, .problem, .sources tbody tr, .mark-row");
      const width = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(width[0] <= width[1], `${path}: ${width}`);
    }
  }));
