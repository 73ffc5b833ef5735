// The strip of `plimsoll up`: load sliders and fault buttons.

import { h, number, setText } from "./dom.js";
import type { Lab } from "./model.js";
import { get } from "./store.js";

const SLIDE_MS = 100;

export function lab(): HTMLElement {
  const strip = h("div", { class: "lab", role: "group", "aria-label": "load and faults" });
  const failure = h("span", { class: "failing", role: "alert" });
  let timer = 0;

  async function send(change: unknown): Promise<void> {
    try {
      draw(await get<Lab>("/api/v1/lab", change));
    } catch (error) {
      setText(failure, `Not changed: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  function draw(state: Lab): void {
    const focus = (document.activeElement as HTMLElement | null)?.dataset["lab"];
    setText(failure, "");
    strip.replaceChildren(
      ...state.loads.map((load) => {
        const shown = h("output", {}, `${number(load.value)} ${load.unit}`);
        const slider = h("input", {
          type: "range",
          min: 0,
          max: load.max,
          step: load.max / 100,
          value: load.value,
          "data-lab": `load-${load.name}`,
          oninput: () => {
            setText(shown, `${number(Number(slider.value))} ${load.unit}`);
            clearTimeout(timer);
            timer = window.setTimeout(() => void send({ load: load.name, value: Number(slider.value) }), SLIDE_MS);
          },
        });
        const back = h("button", { hidden: !load.manual, title: "follow the scenario again", onclick: () => void send({ load: load.name, value: null }) }, "auto");
        return h("label", { class: load.manual ? "manual" : "" }, h("span", {}, load.label), slider, shown, back);
      }),
      ...state.faults.map((fault) =>
        h("button", { class: fault.active ? "fault active" : "fault", "aria-pressed": String(fault.active), "data-lab": `fault-${fault.id}`, onclick: () => void send({ fault: fault.id, active: !fault.active }) }, fault.label),
      ),
      failure,
    );
    if (focus) strip.querySelector<HTMLElement>(`[data-lab="${CSS.escape(focus)}"]`)?.focus();
  }

  const refresh = async () => {
    // What has the focus may just be pressed, also when the answer arrives.
    const isUsed = () => strip.contains(document.activeElement);
    if (document.hidden || isUsed()) return;
    await get<Lab>("/api/v1/lab").then((state) => isUsed() || draw(state), () => {});
  };
  void refresh();
  setInterval(() => void refresh(), 2000);
  return strip;
}
