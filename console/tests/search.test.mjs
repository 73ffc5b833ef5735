// The search of the list, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundled } from "./bundled.mjs";

const { isEmpty, matches, narrows, query } = await bundled("search.ts");

const row = (name, more = {}) => ({ id: `shop/hpa/${name}`, namespace: "shop", target: `Deployment/${name}`, state: "fine", metrics: "cpu: 71%/60%", decision: "stayed: Window until 09:21", ...more });

test("row has every word, in any text and case", () => {
  assert.ok(matches(row("checkout"), query("CHECK window  71%", "", "")));
  assert.ok(!matches(row("checkout"), query("checkout queue", "", "")));
  assert.ok(!matches(row("checkout"), query("", "web", "")));
  assert.ok(!matches(row("checkout"), query("", "shop", "failing")));
  assert.ok(isEmpty(query("  ", "", "")));
});

test("search that narrows another one shows none that the other does not show", () => {
  const texts = ["", "s", "se", "e s", "service", "service-1", "1 service", "service-1 71%", "71%", "window", "x"];
  const queries = texts.flatMap((text) => [query(text, "", ""), query(text, "shop", ""), query(text, "", "failing")]);
  const rows = Array.from({ length: 24 }, (_, i) => row(`service-${i}`, { namespace: i % 2 ? "shop" : "web", state: i % 3 ? "fine" : "failing" }));
  for (const before of queries) {
    for (const now of queries.filter((one) => narrows(one, before))) {
      for (const one of rows) assert.ok(!matches(one, now) || matches(one, before), JSON.stringify([now, before, one]));
    }
  }
  assert.ok(narrows(query("service-1", "", ""), query("service-", "", "")));
  assert.ok(narrows(query("service", "shop", ""), query("serv", "", "")));
  assert.ok(!narrows(query("serv", "", ""), query("service", "", "")));
  assert.ok(!narrows(query("service", "", ""), query("service", "shop", "")));
});
