// Numbers and ages as texts, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundled } from "./bundled.mjs";

const { age, number } = await bundled("dom.ts");

test("small values are not zero, and unknown ones not a number", () => {
  const texts = [0, 0.00412, 0.5, 9.999, 56.24, 305.4, 123_456.7, -0.25, NaN, Infinity].map(number);
  assert.deepEqual(texts, ["0", "0.00412", "0.5", "10", "56.2", "305", "123,457", "-0.25", "–", "–"]);
});

test("ages have one unit", () => {
  assert.deepEqual([-5, 90, 600, 10_800, 259_200].map(age), ["0s", "90s", "10m", "3h", "3d"]);
});
