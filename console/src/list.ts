// The list of all autoscalers. Only visible rows are in the document, so that 10,000 scroll without lag.

import { h, setAttribute, setText, svg } from "./dom.js";
import type { Row, State } from "./model.js";
import { comparison, reordered } from "./order.js";
import { type Page, go, pathOf, replace } from "./router.js";
import { type Query, isEmpty, matches, narrows, query } from "./search.js";
import { type Delta, store } from "./store.js";

const STATES: [State | "", string][] = [
  ["", "all states"],
  ["failing", "failing"],
  ["atMax", "at max"],
  ["partial", "partial"],
  ["fine", "fine"],
  ["paused", "paused"],
];
/** The state in words, before decisions that do not say it. */
const WORD: Record<State, string> = { failing: "failing", atMax: "at max", partial: "partial", fine: "", paused: "paused" };
const SAYS: Record<State, RegExp> = { failing: /^(failing|held)/, atMax: /^at max/, partial: /^partial/, fine: /^/, paused: /^(paused|off)/ };

type Column = "name" | "target" | "metrics" | "replicas" | "spark" | "decision";
const COLUMNS: [Column, string, string][] = [
  ["name", "Name", "name"],
  ["target", "Target", "target"],
  ["metrics", "Metrics", "pressure"],
  ["replicas", "Replicas", "replicas"],
  ["spark", "Last hour", ""],
  ["decision", "Last decision", "state"],
];

/** Spark lines move this often; a pixel is more than half a minute. */
const SPARK_SECONDS = 30;
const LINE_HEIGHT = 28;
const PHONE_LINE_HEIGHT = 84;
/** Pixels of a spark line, as in the style sheet. Scaling a line costs more than making it again. */
const SPARK_WIDTH = 120;
const PHONE_SPARK_WIDTH = 90;
/** Lines above and below those that are visible. Each costs as much with every key as a visible one. */
const SPARE_LINES = 1;
/** How long after the last letter the search is written into the address: each write is a message to another process. */
const ADDRESS_MS = 300;

/** The list as it was left last: coming back to the same address shows the same part and cursor. */
let lastList: { address: string; id: string | undefined; top: number } | null = null;

interface Line {
  element: HTMLElement;
  link: HTMLAnchorElement;
  cells: Record<Column, HTMLElement>;
  path: SVGElement;
  /** What the line shows; it is written again only if that differs. */
  row: Row | null;
  index: number;
  isSelected: boolean;
  sparkAt: number;
  sparkWidth: number;
}

const number = new Intl.NumberFormat("en");

export function list(url: URL, search: HTMLInputElement): Page {
  let chosen = url.searchParams.get("sort") ?? "state";
  let compare = comparison(chosen);
  /** All rows in the chosen order, and those of them that match. */
  let sorted: Row[] = [];
  let order: Row[] = [];
  /** The search that `order` was made by; null after other rows were sorted. */
  let searched: Query | null = null;
  let selected = 0;
  /** Where the list begins if it is the one that was left. */
  let restored = lastList?.address === url.search ? lastList : null;
  let address = url.search;
  let namespace = url.searchParams.get("namespace") ?? "";
  /** What is visible. Reading it from the document would cost a layout with each key. */
  const view = { top: 0, height: 0 };
  const phone = matchMedia("(max-width: 760px)");
  let height = LINE_HEIGHT;
  let sparkWidth = SPARK_WIDTH;
  let spaceHeight = -1;
  let isDrawn = true;
  /** Whether letters were typed for which the list was not filtered yet. */
  let isTyped = false;
  let addressTimer = 0;
  const lines: Line[] = [];

  const namespaces = h("select", { "aria-label": "namespace", onchange: () => chooseNamespace() });
  const states = h("select", { "aria-label": "state", onchange: () => choose() });
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
  // The lines lie one below the other in a part of the space that moves with what is visible.
  const part = h("div", { class: "part", role: "presentation" });
  let partTop = 0;
  const space = h("div", { class: "space", role: "rowgroup" }, part);
  const scroll = h("div", { class: "scroll", role: "presentation", onscroll: () => scrolled(), onfocusin: (event: Event) => selectFocused(event) }, space);
  const table = h("div", { class: "list", role: "table", "aria-label": "autoscalers" }, h("div", { role: "rowgroup" }, head), scroll);
  const empty = h("p", { class: "empty", hidden: true });
  const filters = h("div", { class: "filters" }, namespaces, states, found);
  const element = h("main", { class: "page all" }, filters, table, empty);

  search.value = url.searchParams.get("q") ?? "";
  // Letters that arrive in one frame are one search, so that none waits for the searches of those before it.
  const typed = () => {
    if (!isTyped) requestAnimationFrame(filterTyped);
    isTyped = true;
  };
  search.addEventListener("input", typed);
  search.addEventListener("blur", left);

  function sortBy(sort: string): void {
    chosen = chosen === sort ? `-${sort}` : sort;
    compare = comparison(chosen);
    sorted = [...store.rows.values()].sort(compare);
    searched = null;
    choose();
  }

  function writeAddress(): void {
    clearTimeout(addressTimer);
    addressTimer = 0;
    replace({ q: search.value, namespace: namespaces.value, state: states.value, sort: chosen === "state" ? "" : chosen });
    address = location.search;
  }

  function fillNamespaces(): void {
    const found = new Set([...store.rows.values()].map((row) => row.namespace));
    // The chosen one stays also without autoscalers: showing those of all others instead would be taken for its own.
    if (namespace) found.add(namespace);
    const all = ["", ...[...found].sort()];
    if (all.length === namespaces.options.length && all.every((one, index) => namespaces.options[index]?.value === one)) return;
    namespaces.replaceChildren(...all.map((one) => h("option", { value: one }, one || "all namespaces")));
    namespaces.value = namespace;
  }

  function chooseNamespace(): void {
    namespace = namespaces.value;
    choose();
  }

  /** Takes over what changed in the store. */
  function update(delta: Delta): void {
    if (delta.reset) {
      sorted = [...store.rows.values()].sort(compare);
      fillNamespaces();
    } else if (delta.before.size > 0) {
      sorted = reordered(sorted, store.rows, delta, compare);
      const isOther = ([id, before]: [string, Row | undefined]) => !before || !store.rows.has(id);
      if ([...delta.before].some(isOther)) fillNamespaces();
    } else {
      return draw();
    }
    searched = null;
    if (isTyped) filterTyped();
    else filter(false);
  }

  function filterTyped(): void {
    if (!isTyped) return;
    filter(true);
    clearTimeout(addressTimer);
    addressTimer = setTimeout(writeAddress, ADDRESS_MS);
  }

  /** The search was left: what was typed is in the address from now on. */
  function left(): void {
    if (isTyped || addressTimer) writeAddress();
  }

  /** A choice other than a typed letter. */
  function choose(): void {
    filter(true);
    writeAddress();
  }

  function filter(fromUser: boolean): void {
    isTyped = false;
    const current = order[selected]?.id;
    const wanted = query(search.value, namespaces.value, states.value);
    const candidates = searched && narrows(wanted, searched) ? order : sorted;
    order = isEmpty(wanted) ? sorted : candidates.filter((row) => matches(row, wanted));
    searched = wanted;
    const total = store.rows.size;
    setText(found, !store.isListed ? "" : order.length === total ? number.format(total) : `${number.format(order.length)} of ${number.format(total)}`);
    for (const [sort, cell] of headers) {
      const is = chosen === sort ? "ascending" : chosen === `-${sort}` ? "descending" : null;
      if (is) setAttribute(cell, "aria-sort", is);
      else cell.removeAttribute("aria-sort");
    }
    if (fromUser) {
      selected = 0;
      // Setting the position costs a layout, even if it is the same.
      if (view.top !== 0) scroll.scrollTop = view.top = 0;
    } else if (current && order[selected]?.id !== current) {
      // The cursor stays on its object when others come, go or change their order.
      selected = Math.max(0, order.findIndex((row) => row.id === current));
    }
    empty.hidden = order.length > 0 || store.snapshot === null;
    setText(empty, !store.isListed ? "Not known: the autoscalers could not be read yet." : total === 0 ? "No autoscalers in what you may see." : "Nothing matches. Esc clears search and filters.");
    setAttribute(table, "aria-rowcount", String(order.length + 1));
    draw();
    keepFocus();
  }

  /** The row whose link got the focus, by Tab or a click, is where the cursor is. */
  function selectFocused(event: Event): void {
    const line = lines.find((one) => one.link === event.target);
    if (!line || line.index === selected) return;
    selected = line.index;
    draw();
  }

  /** A line that has the focus may show another row now: the focus goes where its row is. */
  function keepFocus(): void {
    const focused = lines.find((line) => line.link === document.activeElement);
    if (!focused || focused.index === selected) return;
    const line = lines.find((one) => one.index === selected);
    (line?.link ?? element).focus({ preventScroll: true });
  }

  /** Draws once per frame, however many scroll events there are. */
  function scrolled(): void {
    if (!isDrawn) return;
    isDrawn = false;
    requestAnimationFrame(() => {
      isDrawn = true;
      view.top = scroll.scrollTop;
      draw();
      keepFocus();
    });
  }

  function draw(): void {
    height = phone.matches ? PHONE_LINE_HEIGHT : LINE_HEIGHT;
    sparkWidth = phone.matches ? PHONE_SPARK_WIDTH : SPARK_WIDTH;
    if (spaceHeight !== order.length * height) {
      spaceHeight = order.length * height;
      space.style.height = `${spaceHeight}px`;
    }
    const first = Math.max(0, Math.floor(view.top / height) - SPARE_LINES);
    const shown = Math.min(order.length - first, Math.ceil(view.height / height) + 2 * SPARE_LINES);
    if (partTop !== first * height) {
      partTop = first * height;
      part.style.transform = `translateY(${partTop}px)`;
    }
    while (lines.length < shown) lines.push(newLine(part));
    while (lines.length > Math.max(shown, 0)) lines.pop()?.element.remove();
    lines.forEach((line, index) => {
      const row = order[first + index];
      if (row) fill(line, row, first + index);
    });
  }

  function fill(line: Line, row: Row, index: number): void {
    if (line.index !== index) {
      line.index = index;
      line.element.setAttribute("aria-rowindex", String(index + 2));
    }
    const isSelected = index === selected;
    if (line.row !== row || line.isSelected !== isSelected) {
      line.element.className = `line ${row.state}${isSelected ? " selected" : ""}`;
      line.isSelected = isSelected;
    }
    const sparkAt = Math.floor(store.at / SPARK_SECONDS) * SPARK_SECONDS;
    if (line.row !== row || line.sparkAt !== sparkAt || line.sparkWidth !== sparkWidth) {
      setAttribute(line.path, "d", spark(row, sparkAt + SPARK_SECONDS, sparkWidth));
      [line.sparkAt, line.sparkWidth] = [sparkAt, sparkWidth];
    }
    if (line.row === row) return;
    line.row = row;
    setAttribute(line.link, "href", pathOf(row.id));
    setText(line.link, row.kind === "hpa" ? `${row.namespace}/${row.name}` : `${row.namespace}/${row.kind}/${row.name}`);
    setAttribute(line.link, "title", row.id);
    setText(line.cells.target, row.target);
    setText(line.cells.metrics, row.metrics);
    line.cells.metrics.classList.toggle("over", (row.pressure ?? 0) > 1.1);
    const replicas = row.replicas === null ? "?" : String(row.replicas);
    const arrow = row.desired !== null && row.desired !== row.replicas ? ` → ${row.desired}` : "";
    setText(line.cells.replicas, `${replicas}${arrow} of ${row.min}–${row.max}`);
    setText(line.cells.decision, SAYS[row.state].test(row.decision) ? row.decision : `${WORD[row.state]}: ${row.decision}`);
    setAttribute(line.cells.decision, "title", row.decision);
  }

  function move(by: number): void {
    selected = Math.min(Math.max(0, selected + by), Math.max(0, order.length - 1));
    const top = selected * height;
    const wanted = Math.max(Math.min(view.top, top), top + height - view.height);
    if (wanted !== view.top) scroll.scrollTop = view.top = wanted;
    draw();
    const row = order[selected];
    lines.find((line) => line.row === row)?.link.focus({ preventScroll: true });
  }

  /** Shows the part and the cursor of the list that was left, as soon as it is laid out and its rows are known. */
  function restore(): void {
    if (!restored || order.length === 0) return;
    const { id, top } = restored;
    restored = null;
    selected = Math.max(0, order.findIndex((row) => row.id === id));
    draw();
    scroll.scrollTop = top;
    view.top = scroll.scrollTop;
    draw();
    if (document.activeElement === element) lines.find((line) => line.index === selected)?.link.focus({ preventScroll: true });
  }

  const resized = new ResizeObserver(() => {
    view.top = scroll.scrollTop;
    view.height = scroll.clientHeight;
    draw();
    restore();
  });
  resized.observe(scroll);
  const end = store.subscribe(update);
  update({ reset: true, before: new Map() });

  return {
    element,
    title: "Plimsoll",
    key(event) {
      filterTyped();
      const page = Math.max(1, Math.floor(view.height / height) - 1);
      const steps: Record<string, number> = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: page, PageUp: -page, G: 1e9, g: -1e9 };
      const by = steps[event.key];
      if (by !== undefined) {
        move(by);
        return true;
      }
      const id = order[selected]?.id;
      // A link or button elsewhere that has the focus is what Enter means.
      const other = event.target instanceof Element && !part.contains(event.target) && event.target.closest("a, button");
      if ((event.key === "Enter" || event.key === "o") && id && !other) {
        if (addressTimer) writeAddress();
        go(pathOf(id));
        return true;
      }
      if (event.key === "Escape" && (search.value || namespaces.value || states.value)) {
        search.value = states.value = namespaces.value = "";
        chooseNamespace();
        return true;
      }
      return false;
    },
    close() {
      // A link from the list to the list begins at its top.
      lastList = location.pathname === "/" ? null : { address, id: order[selected]?.id, top: view.top };
      isTyped = false;
      clearTimeout(addressTimer);
      search.removeEventListener("input", typed);
      search.removeEventListener("blur", left);
      search.value = "";
      resized.disconnect();
      end();
    },
  };
}

function newLine(part: HTMLElement): Line {
  const link = h("a", { class: "name" });
  const path = svg("path", {});
  const cells = {} as Record<Column, HTMLElement>;
  const element = h("div", { class: "line", role: "row" });
  for (const [column] of COLUMNS) {
    const cell = h("div", { class: `cell ${column}`, role: "cell" });
    if (column === "name") cell.append(link);
    if (column === "spark") cell.append(svg("svg", { "aria-hidden": "true" }, path));
    cells[column] = cell;
    element.append(cell);
  }
  part.append(element);
  return { element, link, cells, path, row: null, index: -1, isSelected: false, sparkAt: 0, sparkWidth: 0 };
}

/** The replica count of the last hour as steps, from min or zero at the bottom to the highest count at the top. */
function spark(row: Row, now: number, width: number): string {
  const steps = row.steps ?? [];
  if (steps.length === 0) return "";
  const start = now - 3600;
  const high = Math.max(1, ...steps.map(([, n]) => n));
  // Whole pixels, which are drawn faster and are sharp.
  const x = (t: number) => Math.round((Math.max(0, t - start) / 3600) * width);
  const y = (n: number) => Math.round(18 - (n / high) * 16);
  const [first, ...rest] = steps;
  let path = `M${x(first![0])} ${y(first![1])}`;
  for (const [t, n] of rest) path += `H${x(t)}V${y(n)}`;
  return `${path}H${width}`;
}
