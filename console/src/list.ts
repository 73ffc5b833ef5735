// The list of all autoscalers. Only visible rows are in the document, so that 10,000 scroll without lag.

import { h, setText, svg } from "./dom.js";
import type { Row, State } from "./model.js";
import { type Page, go, pathOf, replace } from "./router.js";
import { store } from "./store.js";

const STATES: [State | "", string][] = [
  ["", "all states"],
  ["failing", "failing"],
  ["atMax", "at max"],
  ["partial", "partial"],
  ["fine", "fine"],
  ["paused", "paused"],
];
const RANK: Record<State, number> = { failing: 0, atMax: 1, partial: 2, fine: 3, paused: 4 };
const WORD: Record<State, string> = { failing: "failing", atMax: "at max", partial: "partial", fine: "", paused: "paused" };

type Column = "name" | "target" | "metrics" | "replicas" | "spark" | "decision";
const COLUMNS: [Column, string, string][] = [
  ["name", "Name", "name"],
  ["target", "Target", "target"],
  ["metrics", "Metrics", "pressure"],
  ["replicas", "Replicas", "replicas"],
  ["spark", "Last hour", ""],
  ["decision", "Last decision", "state"],
];

interface Line {
  element: HTMLElement;
  link: HTMLAnchorElement;
  cells: Record<Column, HTMLElement>;
  path: SVGElement;
  id: string;
}

export function list(url: URL, search: HTMLInputElement): Page {
  let chosen = url.searchParams.get("sort") ?? "state";
  let order: Row[] = [];
  let selected = 0;
  let height = 28;
  const lines: Line[] = [];

  const namespaces = h("select", { "aria-label": "namespace", onchange: () => update(true) });
  const states = h("select", { "aria-label": "state", onchange: () => update(true) });
  for (const [value, text] of STATES) states.append(h("option", { value }, text));
  states.value = url.searchParams.get("state") ?? "";
  const found = h("span", { class: "found", role: "status" });
  const head = h("div", { class: "line head", role: "row" });
  const headers = new Map<string, HTMLElement>();
  for (const [column, text, sort] of COLUMNS) {
    const cell = h("div", { class: `cell ${column}`, role: "columnheader" });
    if (sort) {
      cell.append(h("button", { class: "sort", onclick: () => sortBy(sort) }, text));
      headers.set(sort, cell);
    } else cell.append(text);
    head.append(cell);
  }
  const space = h("div", { class: "space", role: "rowgroup" });
  const scroll = h("div", { class: "scroll", role: "presentation", onscroll: () => draw() }, space);
  const table = h("div", { class: "list", role: "table", "aria-label": "autoscalers" }, h("div", { role: "rowgroup" }, head), scroll);
  const empty = h("p", { class: "empty", hidden: true });
  const filters = h("div", { class: "filters" }, namespaces, states, found);
  const element = h("main", { class: "page all" }, filters, table, empty);

  search.value = url.searchParams.get("q") ?? "";
  const typed = () => update(true);
  search.addEventListener("input", typed);

  function sortBy(sort: string): void {
    chosen = chosen === sort ? `-${sort}` : sort;
    update(true);
  }

  function fillNamespaces(): void {
    const wanted = namespaces.value || (url.searchParams.get("namespace") ?? "");
    const all = [...new Set([...store.rows.values()].map((row) => row.namespace))].sort();
    if (namespaces.options.length === all.length + 1) return;
    namespaces.replaceChildren(h("option", { value: "" }, "all namespaces"));
    for (const one of all) namespaces.append(h("option", { value: one }, one));
    namespaces.value = all.includes(wanted) ? wanted : "";
  }

  function update(fromUser: boolean): void {
    const current = order[selected]?.id;
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const [namespace, state] = [namespaces.value, states.value];
    order = [...store.rows.values()].filter((row) => {
      if (namespace && row.namespace !== namespace) return false;
      if (state && row.state !== state) return false;
      if (words.length === 0) return true;
      const text = `${row.id} ${row.target} ${row.metrics} ${row.decision}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    order.sort(compare(chosen));
    const total = store.rows.size;
    setText(found, order.length === total ? `${total.toLocaleString("en")}` : `${order.length.toLocaleString("en")} of ${total.toLocaleString("en")}`);
    for (const [sort, cell] of headers) {
      const is = chosen === sort ? "ascending" : chosen === `-${sort}` ? "descending" : null;
      if (is) cell.setAttribute("aria-sort", is);
      else cell.removeAttribute("aria-sort");
    }
    if (fromUser) {
      replace({ q: search.value, namespace, state, sort: chosen === "state" ? "" : chosen });
      selected = 0;
      scroll.scrollTop = 0;
    } else if (current) {
      // The cursor stays on its object when others come, go or change their order.
      selected = Math.max(0, order.findIndex((row) => row.id === current));
    }
    empty.hidden = order.length > 0 || store.snapshot === null;
    setText(empty, total === 0 ? "No autoscalers in what you may see." : "Nothing matches. Esc clears the search.");
    table.setAttribute("aria-rowcount", String(order.length + 1));
    draw();
  }

  function draw(): void {
    height = matchMedia("(max-width: 760px)").matches ? 84 : 28;
    space.style.height = `${order.length * height}px`;
    const first = Math.max(0, Math.floor(scroll.scrollTop / height) - 4);
    const shown = Math.min(order.length - first, Math.ceil(scroll.clientHeight / height) + 8);
    while (lines.length < shown) lines.push(newLine(space));
    while (lines.length > Math.max(shown, 0)) lines.pop()?.element.remove();
    lines.forEach((line, index) => {
      const row = order[first + index];
      if (row) fill(line, row, first + index);
    });
  }

  function fill(line: Line, row: Row, index: number): void {
    line.id = row.id;
    line.element.style.transform = `translateY(${index * height}px)`;
    line.element.setAttribute("aria-rowindex", String(index + 2));
    line.element.className = `line ${row.state}${index === selected ? " selected" : ""}`;
    const path = pathOf(row.id);
    if (line.link.getAttribute("href") !== path) line.link.setAttribute("href", path);
    setText(line.link, row.kind === "hpa" ? `${row.namespace}/${row.name}` : `${row.namespace}/${row.kind}/${row.name}`);
    line.link.title = row.id;
    setText(line.cells.target, row.target);
    setText(line.cells.metrics, row.metrics);
    line.cells.metrics.classList.toggle("over", (row.pressure ?? 0) > 1.1);
    const replicas = row.replicas === null ? "?" : String(row.replicas);
    const arrow = row.desired !== null && row.desired !== row.replicas ? ` → ${row.desired}` : "";
    setText(line.cells.replicas, `${replicas}${arrow} of ${row.min}–${row.max}`);
    line.path.setAttribute("d", spark(row, store.at));
    const word = WORD[row.state];
    setText(line.cells.decision, word && !row.decision.startsWith(word) ? `${word}: ${row.decision}` : row.decision);
    line.cells.decision.title = row.decision;
  }

  function move(by: number): void {
    selected = Math.min(Math.max(0, selected + by), Math.max(0, order.length - 1));
    const top = selected * height;
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    if (top + height > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top + height - scroll.clientHeight;
    draw();
    const id = order[selected]?.id;
    lines.find((line) => line.id === id)?.link.focus({ preventScroll: true });
  }

  const resized = new ResizeObserver(() => draw());
  resized.observe(scroll);
  const end = store.subscribe(() => {
    fillNamespaces();
    update(false);
  });
  fillNamespaces();
  update(false);

  return {
    element,
    title: "Plimsoll",
    key(event) {
      const page = Math.max(1, Math.floor(scroll.clientHeight / height) - 1);
      const steps: Record<string, number> = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: page, PageUp: -page, G: 1e9, g: -1e9 };
      const by = steps[event.key];
      if (by !== undefined) {
        move(by);
        return true;
      }
      const id = order[selected]?.id;
      if ((event.key === "Enter" || event.key === "o") && id && !(event.target instanceof HTMLButtonElement)) {
        go(pathOf(id));
        return true;
      }
      if (event.key === "Escape" && search.value) {
        search.value = "";
        update(true);
        return true;
      }
      return false;
    },
    close() {
      search.removeEventListener("input", typed);
      search.value = "";
      resized.disconnect();
      end();
    },
  };
}

function newLine(space: HTMLElement): Line {
  const link = h("a", { class: "name" });
  const path = svg("path", {});
  const cells = {} as Record<Column, HTMLElement>;
  const element = h("div", { class: "line", role: "row" });
  for (const [column] of COLUMNS) {
    const cell = h("div", { class: `cell ${column}`, role: "cell" });
    if (column === "name") cell.append(link);
    if (column === "spark") cell.append(svg("svg", { viewBox: "0 0 100 20", preserveAspectRatio: "none", "aria-hidden": "true" }, path));
    cells[column] = cell;
    element.append(cell);
  }
  space.append(element);
  return { element, link, cells, path, id: "" };
}

/** The replica count of the last hour as steps, from min or zero at the bottom to the highest count at the top. */
export function spark(row: Row, now: number): string {
  const steps = row.steps ?? [];
  if (steps.length === 0) return "";
  const start = now - 3600;
  const high = Math.max(1, ...steps.map(([, n]) => n));
  const x = (t: number) => (Math.max(0, t - start) / 36).toFixed(1);
  const y = (n: number) => (18 - (n / high) * 16).toFixed(1);
  const [first, ...rest] = steps;
  let path = `M${x(first![0])} ${y(first![1])}`;
  for (const [t, n] of rest) path += `H${x(t)}V${y(n)}`;
  return `${path}H100`;
}

function compare(chosen: string): (a: Row, b: Row) => number {
  const down = chosen.startsWith("-");
  const key = down ? chosen.slice(1) : chosen;
  const byName = (a: Row, b: Row) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
  const by: Record<string, (a: Row, b: Row) => number> = {
    name: byName,
    target: (a, b) => a.target.localeCompare(b.target),
    pressure: (a, b) => (b.pressure ?? -1) - (a.pressure ?? -1),
    replicas: (a, b) => (b.replicas ?? -1) - (a.replicas ?? -1),
    state: (a, b) => RANK[a.state] - RANK[b.state] || (b.pressure ?? -1) - (a.pressure ?? -1),
  };
  const order = by[key] ?? byName;
  return (a, b) => (down ? -1 : 1) * order(a, b) || byName(a, b);
}
