// Which rows a search shows.

import type { Row } from "./model.js";

export interface Query {
  /** In lower case; a row has all of them. */
  words: string[];
  /** Empty for all. */
  namespace: string;
  state: string;
}

export function query(text: string, namespace: string, state: string): Query {
  return { words: text.toLowerCase().split(/\s+/).filter(Boolean), namespace, state };
}

/** Whether it shows every row. */
export function isEmpty({ words, namespace, state }: Query): boolean {
  return !namespace && !state && words.length === 0;
}

export function matches(row: Row, { words, namespace, state }: Query): boolean {
  if (namespace && row.namespace !== namespace) return false;
  if (state && row.state !== state) return false;
  return words.every((word) => has(row, word));
}

/** Whether a search shows only rows that another one shows too: then no other row needs to be looked at. */
export function narrows(now: Query, before: Query): boolean {
  if (before.namespace && now.namespace !== before.namespace) return false;
  if (before.state && now.state !== before.state) return false;
  return before.words.every((old) => now.words.some((word) => word.includes(old)));
}

/** Most words are found in the names, which live changes leave alone. */
function has(row: Row, word: string): boolean {
  row.names ??= `${row.id} ${row.target}`.toLowerCase();
  if (row.names.includes(word)) return true;
  row.values ??= `${row.metrics} ${row.decision}`.toLowerCase();
  return row.values.includes(word);
}
