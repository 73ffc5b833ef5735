// What if: the recorded history replayed by the engine with other fields.

import uPlot from "uplot";
import { axis, colour, stepped, timeAxis } from "./chart.js";
import { age, h, number, setText } from "./dom.js";
import type { Fields, Totals, WhatIf } from "./model.js";
import { RequestError, get } from "./store.js";

const TYPING_MS = 250;
/** How soon a replay is repeated that had too few recorded passes. */
const RETRY_MS = 5000;

export function whatIf(base: string, now: Fields): HTMLElement {
  const inputs = new Map<string, HTMLInputElement>();
  let timer = 0;
  let running: AbortController | null = null;
  let plot: uPlot | null = null;

  const field = (key: string, label: string, value: number | null, unit: string, min = 0): HTMLElement => {
    const input = h("input", { type: "number", min, step: unit === "s" || key === "min" || key === "max" ? 1 : "any", value: value ?? "", placeholder: "–", oninput: changed });
    inputs.set(key, input);
    return h("label", {}, h("span", {}, label), input, h("span", { class: "dim" }, unit));
  };
  const form = h(
    "form",
    { class: "fields", onsubmit: (event: Event) => event.preventDefault() },
    ...now.metrics.map((metric, index) => field(`target${index}`, `${metric.name} target`, metric.target, metric.unit)),
    field("min", "min replicas", now.min, ""),
    field("max", "max replicas", now.max, "", 1),
    field("upWindow", "scale-up window", now.upWindow, "s"),
    field("downWindow", "scale-down window", now.downWindow, "s"),
    field("upPercent", "up at most", now.upPercent, "%/15 s"),
    field("upPods", "or up at most", now.upPods, "pods/15 s"),
    field("downPercent", "down at most", now.downPercent, "%/15 s"),
    field("downPods", "or down at most", now.downPods, "pods/15 s"),
  );
  const answer = h("p", { class: "answer", role: "status" }, "Change a field: the recorded history is replayed at once.");
  const place = h("div", { class: "charts" });
  const table = h("div", {});
  const patch = h("pre", { class: "patch", tabindex: 0, "aria-label": "patch" });
  const copy = h("button", { type: "button", onclick: () => void copied() }, "copy as patch");
  const inputsNote = h("p", { class: "dim" });
  const result = h("div", { hidden: true }, place, h("div", { class: "columns" }, h("div", {}, table, inputsNote), h("div", {}, copy, patch)));
  const element = h("section", { class: "whatif" }, h("details", {}, h("summary", {}, "What if"), form, answer, result));

  async function copied(): Promise<void> {
    await navigator.clipboard.writeText(patch.textContent ?? "");
    setText(copy, "copied");
    setTimeout(() => setText(copy, "copy as patch"), 1500);
  }

  function changed(): void {
    clearTimeout(timer);
    timer = window.setTimeout(() => void replay(), TYPING_MS);
  }

  async function replay(): Promise<void> {
    running?.abort();
    running = new AbortController();
    const value = (key: string): number | null => {
      const text = inputs.get(key)?.value ?? "";
      return text === "" || !Number.isFinite(Number(text)) ? null : Number(text);
    };
    const fields: Fields = {
      min: value("min") ?? now.min,
      max: value("max") ?? now.max,
      metrics: now.metrics.map((metric, index) => ({ ...metric, target: value(`target${index}`) ?? metric.target })),
      upWindow: value("upWindow") ?? now.upWindow,
      downWindow: value("downWindow") ?? now.downWindow,
      upPercent: value("upPercent"),
      upPods: value("upPods"),
      downPercent: value("downPercent"),
      downPods: value("downPods"),
    };
    try {
      show(await get<WhatIf>(`${base}/whatif`, fields, running.signal));
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") return;
      setText(answer, error instanceof Error ? error.message : String(error));
      answer.classList.add("failing");
      if (error instanceof RequestError && error.status === 404 && element.isConnected) {
        clearTimeout(timer);
        timer = window.setTimeout(() => void replay(), RETRY_MS);
      }
    }
  }

  function show(found: WhatIf): void {
    answer.classList.remove("failing");
    setText(answer, sentence(found));
    result.hidden = false;
    setText(patch, found.patch);
    setText(inputsNote, `Recorded: ${found.recorded.join(", ") || "nothing"}. Modelled: ${found.modelled.join(", ") || "nothing"}.`);
    const rows: [string, (t: Totals) => string][] = [
      ["pod-hours", (t) => number(t.podHours)],
      ["time above target", (t) => age(t.aboveTargetSeconds)],
      ["changes", (t) => String(t.changes)],
      ["worst reaction", (t) => (t.worstReactionSeconds === null ? "–" : age(t.worstReactionSeconds))],
      ["most replicas", (t) => String(t.peak)],
    ];
    table.replaceChildren(
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, ...["", "before", "after"].map((text) => h("th", { scope: "col" }, text)))),
        h("tbody", {}, ...rows.map(([label, of]) => h("tr", {}, h("th", { scope: "row" }, label), h("td", { class: "number" }, of(found.before)), h("td", { class: "number" }, of(found.after))))),
      ),
    );
    const data: uPlot.AlignedData = [found.points.map((p) => p.t), found.points.map((p) => p.before), found.points.map((p) => p.after)];
    plot?.destroy();
    plot = new uPlot(
      {
        width: Math.max(280, place.clientWidth),
        height: 170,
        tzDate: (t) => uPlot.tzDate(new Date(t * 1000), "Etc/UTC"),
        scales: { y: { range: (_, low, high) => [Math.min(0, low), high + 1] } },
        axes: [timeAxis(), axis({ size: 46, incrs: [1, 2, 5, 10, 20, 50, 100, 500, 1000] })],
        series: [
          { label: "time" },
          { label: "before", stroke: colour("--dim"), width: 1.5, dash: [4, 4], paths: stepped(), points: { show: false } },
          { label: "after", stroke: colour("--line1"), width: 2, paths: stepped(), points: { show: false } },
        ],
      },
      data,
      place,
    );
  }

  return element;
}

function sentence(found: WhatIf): string {
  const { before, after } = found;
  const hours = after.podHours - before.podHours;
  const cost = Math.abs(hours) < 0.01 ? "as many pod-hours" : `${number(Math.abs(hours))} pod-hours ${hours < 0 ? "fewer" : "more"}`;
  const time = after.aboveTargetSeconds - before.aboveTargetSeconds;
  const above = time === 0 ? "the same time above target" : `${age(Math.abs(time))} ${time < 0 ? "less" : "more"} above target`;
  return `With these fields: ${cost}, ${above}, ${after.changes} changes instead of ${before.changes}.`;
}
