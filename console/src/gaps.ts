// Times of a chart about which nothing is known.

import type { History, Point } from "./model.js";

/** A time between two points that is longer than so many of the times next to it, and so much longer, has no data. */
const GAP_FACTOR = 4;
const GAP_EXTRA_SECONDS = 60;
/** Points at regular times. Those of the status, and of decisions without passes, are only there where something changed. */
const REGULAR_SOURCES = ["passes", "prometheus"];

/** The points with an empty one in each time without data, so that no line is drawn through it. */
export function withGaps(history: History): Point[] {
  const { points, source } = history;
  if (!REGULAR_SOURCES.includes(source)) return points;
  const interval = (end: number): number => (points[end]?.t ?? NaN) - (points[end - 1]?.t ?? NaN);
  const all: Point[] = [];
  points.forEach((point, index) => {
    const beside = [interval(index - 1), interval(index + 1)].filter((seconds) => seconds > 0);
    const usual = Math.max(...beside);
    const before = points[index - 1];
    if (before && beside.length > 0 && interval(index) > GAP_FACTOR * usual + GAP_EXTRA_SECONDS) {
      all.push({ ...before, t: before.t + usual, current: null, desired: null, values: before.values.map(() => null), held: "" });
    }
    all.push(point);
  });
  return all;
}
