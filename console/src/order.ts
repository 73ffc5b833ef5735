// The rows in an order, kept while rows change: what moves is merged, so that nothing is sorted while changes arrive.

import type { Row, State } from "./model.js";
import type { Delta } from "./store.js";

type Compare = (a: Row, b: Row) => number;

const RANK: Record<State, number> = { failing: 0, atMax: 1, partial: 2, fine: 3, paused: 4 };

const text = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
const byName: Compare = (a, b) => text(a.id, b.id);
const BY: Record<string, Compare> = {
  name: byName,
  target: (a, b) => text(a.target, b.target),
  pressure: (a, b) => (b.pressure ?? -1) - (a.pressure ?? -1),
  replicas: (a, b) => (b.replicas ?? -1) - (a.replicas ?? -1),
  state: (a, b) => RANK[a.state] - RANK[b.state] || (b.pressure ?? -1) - (a.pressure ?? -1),
};

/** An order by a column (`-name`: downwards); rows of the same value are sorted by name, so that no two are equal. */
export function comparison(chosen: string): Compare {
  const down = chosen.startsWith("-");
  const order = BY[down ? chosen.slice(1) : chosen] ?? byName;
  return down ? (a, b) => -order(a, b) || byName(a, b) : (a, b) => order(a, b) || byName(a, b);
}

/** The same order after a change. */
export function reordered(sorted: Row[], rows: Map<string, Row>, delta: Delta, compare: Compare): Row[] {
  const gone = new Set<Row>();
  const come: Row[] = [];
  for (const [id, before] of delta.before) {
    const now = rows.get(id);
    if (now === before) continue;
    if (before && now && compare(before, now) === 0) {
      sorted[place(sorted, before, compare)] = now;
      continue;
    }
    if (before) gone.add(before);
    if (!now) continue;
    // The order may have been made from the rows after this change: the row is there already then.
    gone.add(now);
    come.push(now);
  }
  if (gone.size + come.length === 0) return sorted;
  come.sort(compare);
  const merged: Row[] = [];
  let next = 0;
  for (const row of sorted) {
    if (gone.has(row)) continue;
    while (next < come.length && compare(come[next]!, row) < 0) merged.push(come[next++]!);
    merged.push(row);
  }
  for (; next < come.length; next += 1) merged.push(come[next]!);
  return merged;
}

/** The index of a row, by bisection. */
function place(sorted: Row[], row: Row, compare: Compare): number {
  let low = 0;
  let high = sorted.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare(sorted[middle]!, row) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
