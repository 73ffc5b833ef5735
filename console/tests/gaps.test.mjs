// Times without data in a chart, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundled } from "./bundled.mjs";

const { withGaps } = await bundled("gaps.ts");

const history = (source, ...times) => ({ source, points: times.map((t) => ({ t, current: 4, desired: 4, min: 1, max: 9, values: [50], held: "window" })) });
const times = (history) => withGaps(history).map((point) => (point.current === null ? `-${point.t}` : `${point.t}`));

test("time in which no pass was recorded is empty", () => {
  assert.deepEqual(times(history("passes", 0, 15, 30, 3600, 3615)), ["0", "15", "30", "-45", "3600", "3615"]);
  assert.deepEqual(times(history("passes", 0, 15, 3600)), ["0", "15", "-30", "3600"], "also before the newest point");
  assert.deepEqual(times(history("prometheus", 0, 172, 344, 1720, 1892)), ["0", "172", "344", "-516", "1720", "1892"]);
  const empty = withGaps(history("passes", 0, 15, 3600))[2];
  assert.deepEqual([empty.desired, empty.values, empty.held], [null, [null], ""]);
});

test("passes that are late, and another period, are no gap", () => {
  assert.deepEqual(times(history("passes", 0, 15, 100, 115)), ["0", "15", "100", "115"]);
  assert.deepEqual(times(history("passes", 0, 15, 30, 330, 630, 930)), ["0", "15", "30", "330", "630", "930"]);
  assert.deepEqual(times(history("status", 0, 15, 30, 3600, 3615)), ["0", "15", "30", "3600", "3615"], "a status holds until it changes");
  assert.deepEqual(times(history("passes", 0, 3600)), ["0", "3600"]);
  assert.deepEqual(times(history("passes")), []);
});
