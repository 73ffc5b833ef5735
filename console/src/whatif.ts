// What if: the recorded history replayed by the engine with other fields.

import uPlot from "uplot";
import { axis, colour, stepped, timeAxis } from "./chart.js";
import { age, h, number, setText } from "./dom.js";
import type { Fields, Policy, Rules, Totals, WhatIf } from "./model.js";
import { RequestError, get } from "./store.js";

const TYPING_MS = 250;
/** How soon a replay is repeated that had too few recorded passes. */
const RETRY_MS = 5000;
const NEW_POLICY: Policy = { kind: "pods", value: 1, period: 60 };
const KINDS: [Policy["kind"], string][] = [
  ["percent", "%"],
  ["pods", "pods"],
];
const SELECTS: [Rules["select"], string][] = [
  ["max", "the largest change"],
  ["min", "the smallest change"],
  ["disabled", "no change"],
];

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
  const up = rules("scale up", now.up, changed);
  const down = rules("scale down", now.down, changed);
  const form = h(
    "form",
    { class: "fields", onsubmit: (event: Event) => event.preventDefault() },
    ...now.metrics.map((metric, index) => field(`target${index}`, `${metric.name} target`, metric.target, metric.unit)),
    field("min", "min replicas", now.min, ""),
    field("max", "max replicas", now.max, "", 1),
    up.element,
    down.element,
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
    try {
      await navigator.clipboard.writeText(patch.textContent ?? "");
      setText(copy, "copied");
    } catch {
      // The browser or its user refused.
      getSelection()?.selectAllChildren(patch);
      setText(copy, "selected: press Ctrl-C");
    }
    setTimeout(() => setText(copy, "copy as patch"), 1500);
  }

  function changed(): void {
    clearTimeout(timer);
    timer = window.setTimeout(() => void replay(), TYPING_MS);
  }

  async function replay(): Promise<void> {
    running?.abort();
    running = new AbortController();
    const value = (key: string): number | null => read(inputs.get(key));
    const fields: Fields = {
      min: value("min") ?? now.min,
      max: value("max") ?? now.max,
      metrics: now.metrics.map((metric, index) => ({ ...metric, target: value(`target${index}`) ?? metric.target })),
      up: up.read(),
      down: down.read(),
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

/** The number in a field; null if it is empty. */
function read(input: HTMLInputElement | undefined): number | null {
  const text = input?.value ?? "";
  return text === "" || !Number.isFinite(Number(text)) ? null : Number(text);
}

function choice<T extends string>(label: string, options: [T, string][], value: T, changed: () => void): HTMLSelectElement {
  const select = h("select", { "aria-label": label, onchange: changed }, ...options.map(([option, text]) => h("option", { value: option }, text)));
  select.value = value;
  return select;
}

/** The fields of one direction, and what they say. */
function rules(title: string, now: Rules, changed: () => void): { element: HTMLElement; read: () => Rules } {
  const lines = new Map<HTMLElement, () => Policy | null>();
  const count = (label: string, value: number, min: number, max?: number): HTMLInputElement =>
    h("input", { type: "number", min, max, step: 1, value, "aria-label": `${title}: ${label}`, oninput: changed });
  const windowField = count("stabilization window in seconds", now.window, 0, 3600);
  const select = choice(`${title}: which policy counts`, SELECTS, now.select, changed);
  const policies = h("div", { class: "policies" });
  const add = (policy: Policy): void => {
    const value = count("policy", policy.value, 1);
    const kind = choice(`${title}: unit of the policy`, KINDS, policy.kind, changed);
    const period = count("period in seconds", policy.period, 1, 1800);
    const remove = (): void => {
      lines.delete(line);
      line.remove();
      changed();
    };
    const line = h("div", { class: "policy" }, value, kind, " in ", period, " s ", h("button", { type: "button", "aria-label": `${title}: remove the policy`, onclick: remove }, "×"));
    lines.set(line, () => {
      const [amount, seconds] = [read(value), read(period)];
      // A policy that is being typed does not count yet.
      return amount === null || seconds === null ? null : { kind: kind.value as Policy["kind"], value: Math.round(amount), period: Math.round(seconds) };
    });
    policies.append(line);
  };
  now.policies.forEach(add);
  const another = (): void => {
    add(NEW_POLICY);
    changed();
  };
  const element = h(
    "fieldset",
    {},
    h("legend", {}, title),
    h("div", { class: "policy" }, "window ", windowField, " s"),
    h("div", { class: "policy" }, "of the policies, ", select),
    policies,
    h("button", { type: "button", onclick: another }, "add policy"),
  );
  const found = (): Rules => ({
    window: Math.round(read(windowField) ?? now.window),
    select: select.value as Rules["select"],
    policies: [...lines.values()].map((line) => line()).filter((policy) => policy !== null),
  });
  return { element, read: found };
}

function sentence(found: WhatIf): string {
  const { before, after } = found;
  const hours = after.podHours - before.podHours;
  const cost = Math.abs(hours) < 0.01 ? "as many pod-hours" : `${number(Math.abs(hours))} pod-hours ${hours < 0 ? "fewer" : "more"}`;
  const time = after.aboveTargetSeconds - before.aboveTargetSeconds;
  const above = time === 0 ? "the same time above target" : `${age(Math.abs(time))} ${time < 0 ? "less" : "more"} above target`;
  return `With these fields: ${cost}, ${above}, ${after.changes} changes instead of ${before.changes}.`;
}
