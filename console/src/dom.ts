// Builds elements. Every text becomes a text node, so names and messages cannot become markup.

export type Child = Node | string | number | null | undefined | false;

type Props = { [name: string]: string | number | boolean | null | undefined | EventListener };

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  apply(element, props);
  append(element, children);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag: string, props: Props = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS(SVG, tag);
  apply(element, props);
  append(element, children);
  return element;
}

function apply(element: Element, props: Props): void {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2).toLowerCase(), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(typeof child === "number" ? String(child) : child);
  }
}

/** Sets a text only if it differs, so that live updates do not disturb a selection. The text node stays: another one would be laid out with its surroundings. */
export function setText(element: Element, text: string): void {
  const only = element.firstChild;
  if (only instanceof Text && !only.nextSibling) {
    if (only.data !== text) only.data = text;
  } else if (element.textContent !== text) element.textContent = text;
}

/** Sets an attribute only if it differs, so that the browser does not compute styles again. */
export function setAttribute(element: Element, name: string, value: string): void {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** A name of the cluster: isolated, so that right-to-left text does not reorder its surroundings. */
export function name(text: string, tag: "span" | "bdi" = "bdi"): HTMLElement {
  return h(tag, { title: text }, text);
}

/** A table that may be wider than the page; it takes the focus, so that keys can scroll it. */
export function wide(label: string, table: HTMLElement): HTMLElement {
  return h("div", { class: "wide", role: "region", "aria-label": label, tabindex: 0 }, table);
}

const two = (n: number): string => String(n).padStart(2, "0");

/** `09:14:45`, in UTC as everywhere in Plimsoll. */
export function clock(seconds: number): string {
  const at = new Date(seconds * 1000);
  return `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())}`;
}

/** `90s`, `4m`, `3h`, `2d`. */
export function age(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 120) return `${s}s`;
  if (s < 7200) return `${Math.round(s / 60)}m`;
  if (s < 172800) return `${Math.round(s / 3600)}h`;
  return `${Math.round(s / 86400)}d`;
}

/** How long before `now` something was, with the time itself as title. */
export function ago(at: number, now: number): HTMLElement {
  const time = new Date(at * 1000).toISOString().replace(".000Z", "Z");
  return h("time", { datetime: time, title: time, "data-at": at }, age(now - at));
}

/** Counts the ages within an element from a new time. */
export function refreshAges(within: HTMLElement, now: number): void {
  for (const time of within.querySelectorAll<HTMLElement>("time[data-at]")) setText(time, age(now - Number(time.dataset["at"])));
}

/** At most three significant digits besides whole numbers, with thousands separated; a small value is not zero. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return "–";
  return value.toLocaleString("en", Math.abs(value) >= 100 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 3 });
}

export function count(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}
