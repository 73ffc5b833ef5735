// Problems by cause, and the sources that they come from.

import { type Child, ago, count, h, name, refreshAges, wide } from "./dom.js";
import type { Problem, Source } from "./model.js";
import { type Page, pathOf } from "./router.js";
import { store } from "./store.js";

/** More names than this are behind a button. */
const MAX_NAMES = 12;

export function problems(): Page {
  const body = h("div", {});
  const element = h("main", { class: "page prose" }, body);
  const open = new Set<string>();
  let shown = "";
  const draw = () => {
    const all = store.snapshot?.problems ?? [];
    const now = JSON.stringify([all, store.isListed, [...open]]);
    if (now === shown) return refreshAges(body, store.at);
    shown = now;
    const focus = document.activeElement?.getAttribute("data-focus");
    body.replaceChildren(
      ...(all.length === 0 ? [h("p", { class: "empty" }, store.isListed ? "No problems. Every autoscaler that you may see can decide." : "Not known: the autoscalers could not be read yet.")] : all.map(one)),
      h("p", { class: "more" }, h("a", { href: "/sources" }, "Sources: metrics APIs, controllers, triggers")),
    );
    if (focus) body.querySelector<HTMLElement>(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
  };
  const one = (problem: Problem): HTMLElement => {
    const key = problem.cause + problem.remedy;
    const all = open.has(key);
    const names = all ? problem.autoscalers : problem.autoscalers.slice(0, MAX_NAMES);
    const rest = problem.autoscalers.length - names.length;
    const toggle = () => {
      if (all) open.delete(key);
      else open.add(key);
      draw();
    };
    return h(
      "section",
      { class: `problem ${problem.state}` },
      h("h2", {}, name(problem.cause), `: ${count(problem.autoscalers.length, "autoscaler")} ${effect(problem)}`),
      problem.detail && h("p", { class: "detail" }, name(problem.detail)),
      h(
        "dl",
        {},
        ...(problem.since === null ? [] : fact("since", ago(problem.since, store.at), " ago")),
        ...(problem.risk ? fact("at risk", name(problem.risk)) : []),
        ...(problem.remedy ? fact("remedy", name(problem.remedy)) : []),
      ),
      h(
        "ul",
        { class: "names" },
        ...names.map((id) => h("li", {}, h("a", { href: pathOf(id), "data-focus": `${key} ${id}` }, name(id)))),
        rest > 0 && h("li", {}, h("button", { onclick: toggle, "data-focus": key }, `and ${rest.toLocaleString("en")} more`)),
        all && problem.autoscalers.length > MAX_NAMES && h("li", {}, h("button", { onclick: toggle, "data-focus": key }, "fewer")),
      ),
    );
  };
  draw();
  return { element, title: "Problems · Plimsoll", close: store.subscribe(draw), key: links(element) };
}

function effect(problem: Problem): string {
  const one = problem.autoscalers.length === 1;
  if (problem.state === "atMax") return one ? "is at max" : "are at max";
  if (problem.effect === "hold") return one ? "holds" : "hold";
  if (problem.effect.startsWith("decide")) return one ? problem.effect.replace("decide", "decides") : problem.effect;
  return problem.effect;
}

function fact(label: string, ...text: Child[]): HTMLElement[] {
  return [h("dt", {}, label), h("dd", {}, ...text)];
}

const MARK: Record<Source["health"], string> = { ok: "●", failing: "✗", missing: "○", unknown: "?" };

export function sources(): Page {
  const body = h("tbody", {});
  const table = h(
    "table",
    { class: "sources" },
    h("caption", {}, "Where metrics and decisions come from, as this cluster serves them to you"),
    h("thead", {}, h("tr", {}, ...["", "Source", "Kind", "Latency", "Detail"].map((text) => h("th", { scope: "col" }, text)))),
    body,
  );
  const element = h("main", { class: "page prose" }, wide("sources", table));
  let shown = "";
  const draw = () => {
    const all = store.snapshot?.sources ?? [];
    const now = JSON.stringify(all);
    if (now === shown) return;
    shown = now;
    body.replaceChildren(
      ...all.map((source) =>
        h(
          "tr",
          { class: source.health },
          h("td", { class: "mark", title: source.health }, MARK[source.health], h("span", { class: "hidden" }, source.health)),
          h("td", {}, name(source.name)),
          h("td", {}, source.kind),
          h("td", { class: "number" }, source.latencyMs === null ? "–" : `${Math.round(source.latencyMs)} ms`),
          h("td", {}, name(source.detail), source.remedy && h("div", { class: "remedy" }, `remedy: ${source.remedy}`)),
        ),
      ),
    );
    if (all.length === 0) body.replaceChildren(h("tr", {}, h("td", { colspan: 5, class: "empty" }, "Nothing is known yet.")));
  };
  draw();
  return { element, title: "Sources · Plimsoll", close: store.subscribe(draw) };
}

/** j and k move along the links of a page. */
function links(element: HTMLElement): (event: KeyboardEvent) => boolean {
  return (event) => {
    const by = event.key === "j" ? 1 : event.key === "k" ? -1 : 0;
    if (by === 0) return false;
    const all = [...element.querySelectorAll<HTMLElement>(".names a, .names button")];
    const at = all.indexOf(document.activeElement as HTMLElement);
    all[Math.min(Math.max(0, at < 0 ? 0 : at + by), all.length - 1)]?.focus();
    return true;
  };
}
