// The order of the list, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundled } from "./bundled.mjs";

const { comparison, reordered } = await bundled("order.ts");

const STATES = ["failing", "atMax", "partial", "fine", "paused"];
const byState = comparison("state");

test("row that changed while the list opened is there once", () => {
  const before = { id: "a", state: "fine", pressure: 1 };
  const now = { id: "a", state: "failing", pressure: 2 };
  const other = { id: "b", state: "fine", pressure: 1.5 };
  const rows = new Map([["a", now], ["b", other]]);
  // The list was sorted after the change had arrived, and before it was told of the change.
  assert.deepEqual(reordered([now, other], rows, { reset: false, before: new Map([["a", before]]) }, byState), [now, other]);
});

test("changes give the same order as sorting everything", () => {
  for (const chosen of ["state", "-state", "replicas", "name", "-pressure"]) {
    const compare = comparison(chosen);
    const row = (i, turn) => ({ id: `n${i % 5}/hpa/${i}`, state: STATES[(i * 3 + turn) % 5], pressure: ((i * 7 + turn * 5) % 20) / 10, replicas: (i + turn) % 9 });
    const rows = new Map(Array.from({ length: 200 }, (_, i) => row(i, 0)).map((one) => [one.id, one]));
    let sorted = [...rows.values()].sort(compare);
    for (let turn = 1; turn < 20; turn += 1) {
      const before = new Map();
      for (let i = turn % 4; i < 210; i += 4) {
        const next = row(i, turn);
        before.set(next.id, rows.get(next.id));
        if ((i + turn) % 11 === 0) rows.delete(next.id);
        else rows.set(next.id, next);
      }
      sorted = reordered(sorted, rows, { reset: false, before }, compare);
      assert.deepEqual(sorted, [...rows.values()].sort(compare), `${chosen}, turn ${turn}`);
    }
  }
});
