// One autoscaler: what happens now and why, the chart, what if, conditions, events, YAML.

import { chart } from "./chart.js";
import { ago, clock, h, name, refreshAges, setText, wide } from "./dom.js";
import type { Detail, History, Mark, Row, Why } from "./model.js";
import { type Page, goToList, replace } from "./router.js";
import { RequestError, get, store } from "./store.js";
import { whatIf } from "./whatif.js";

/** How often history is fetched; only what is new is sent. */
const HISTORY_PERIOD_MS = 5000;
/** How often the object and its events are read again that did not change. */
const OBJECT_PERIOD_MS = 30_000;
/** How long the cursor rests on a decision before its explanation is fetched. */
const REST_MS = 120;
/** Longer ranges than are recorded, in seconds. */
const RANGES: [string, number][] = [
  ["recorded", 0],
  ["1 day", 86_400],
  ["7 days", 604_800],
  ["30 days", 2_592_000],
];

/** The last time that a `Date` can carry, in seconds. */
const MAX_SECONDS = 8.64e12;

export function detail(id: string, url: URL): Page {
  const base = `/api/v1/autoscalers/${id.split("/").map(encodeURIComponent).join("/")}`;
  const stop = new AbortController();
  let history: History | null = null;
  let marks: Mark[] = [];
  let chosen: Mark | null = null;
  let wanted = Number(url.searchParams.get("at")) || 0;
  // A later time is not a valid `Date`, and formatting it throws a RangeError.
  if (Math.abs(wanted) > MAX_SECONDS) wanted = 0;
  let resting = 0;
  let gone = false;
  /** What is said about the parts of the page: errors, and where the history comes from. */
  const remarks = { object: "", history: "", decision: "" };
  /** The time of the object that is shown, and when it was asked for. */
  let readAt = 0;
  let triedAt = -Infinity;
  let range = 0;
  const explained = new Map<number, Why>();

  const target = h("p", { class: "target", hidden: true });
  const sentence = h("p", { class: "sentence", role: "status" }, "…");
  const note = h("p", { class: "note", hidden: true });
  const ranges = h("div", { class: "ranges", role: "group", "aria-label": "time range", hidden: true }, ...RANGES.map(([label, length]) => h("button", { "aria-pressed": String(length === 0), onclick: () => show(length) }, label)));
  const plot = chart((mark) => choose(mark, false));
  const marksList = h("ol", { class: "marks", "aria-label": "decisions, newest first" });
  const why = h("div", { class: "why" });
  const when = h("h2", { id: "why" }, "Why");
  const latest = h("button", { hidden: true, onclick: () => choose(null, true) }, "latest");
  const lists = h("div", {});
  const what = h("div", {});
  const element = h(
    "main",
    { class: "page one" },
    h("h1", {}, name(id)),
    target,
    sentence,
    note,
    ranges,
    plot.element,
    h("div", { class: "columns" }, h("section", { "aria-labelledby": "why" }, h("div", { class: "row" }, when, latest), why), h("section", {}, h("h2", {}, "Decisions"), marksList)),
    what,
    lists,
  );

  /** Shows what is said about one part, and keeps what is said about others. */
  function remark(about: keyof typeof remarks, text: string): void {
    remarks[about] = text;
    const all = [...new Set(Object.values(remarks).filter(Boolean))].join(" ");
    setText(note, all);
    note.hidden = all === "";
  }

  function fail(about: keyof typeof remarks, error: unknown): void {
    if (stop.signal.aborted || gone) return;
    // Only of the object: a Prometheus that is not found says nothing about it.
    if (about === "object" && error instanceof RequestError && error.status === 404) {
      gone = true;
      sentence.replaceChildren(name(id), " does not exist, or not any more. ", h("a", { href: "/" }, "All autoscalers"));
      sentence.classList.add("failing");
      target.hidden = true;
      return;
    }
    if (error instanceof RequestError && error.status === 401) return;
    const cause = error instanceof Error ? error.message : String(error);
    if (about === "object" && readAt === 0) setText(sentence, "Not known: the object could not be read yet.");
    remark(about, about === "object" && readAt > 0 ? `${cause}. Conditions and events are those of ${clock(readAt)} UTC.` : cause);
  }

  async function load(): Promise<void> {
    triedAt = performance.now();
    try {
      const found = await get<Detail>(base, undefined, stop.signal);
      gone = false;
      readAt = store.at || Date.now() / 1000;
      remark("object", "");
      sentence.className = `sentence ${found.row.state}`;
      setText(sentence, found.why.headline);
      showTarget(found.row);
      explained.set(0, found.why);
      if (!chosen) explain(found.why, "Why");
      showFacts(found);
      if (found.fields && !what.hasChildNodes()) what.append(whatIf(base, found.fields));
    } catch (error) {
      triedAt = -Infinity;
      fail("object", error);
    }
  }

  /** Replaces conditions, events and YAML; what the user reads stays open, in place and focused. */
  function showFacts(found: Detail): void {
    const parts = (): [string, HTMLElement][] =>
      [...lists.querySelectorAll<HTMLElement>("[tabindex], summary")].map((part) => [part.getAttribute("aria-label") ?? part.tagName, part]);
    const before = new Map(parts().map(([key, part]) => [key, { left: part.scrollLeft, top: part.scrollTop, isFocused: part === document.activeElement }]));
    lists.replaceChildren(...facts(found, lists.querySelector("details")?.open ?? false));
    for (const [key, part] of parts()) {
      const old = before.get(key);
      if (!old) continue;
      part.scrollTo(old.left, old.top);
      if (old.isFocused) part.focus({ preventScroll: true });
    }
  }

  function showTarget(row: Row): void {
    const count = row.replicas === null ? "an unknown number of replicas" : `${row.replicas} of ${row.min}–${row.max} replicas`;
    const others = h("a", { href: `/?q=${encodeURIComponent(row.target)}`, title: "every autoscaler of this target" }, name(row.target));
    target.replaceChildren("scales ", others, `, ${count}`);
    target.hidden = false;
  }

  function show(length: number): void {
    range = length;
    history = null;
    ranges.querySelectorAll("button").forEach((button, index) => button.setAttribute("aria-pressed", String(RANGES[index]?.[1] === length)));
    void more();
  }

  /** Shows a longer range. The decisions stay those that are recorded. */
  async function far(length: number): Promise<void> {
    try {
      const found = await get<History>(`${base}/history?range=${length}`, undefined, stop.signal);
      if (range !== length) return;
      remark("history", found.note);
      plot.update({ ...found, marks });
    } catch (error) {
      if (range !== length) return;
      // The chart of another range would be taken for this one.
      plot.update({ source: "prometheus", note: "", cursor: null, reset: true, metrics: [], points: [], marks: [] });
      fail("history", error);
    }
  }

  async function more(): Promise<void> {
    if (range > 0) return far(range);
    try {
      const after = history?.cursor ? `?after=${encodeURIComponent(history.cursor)}` : "";
      const next = await get<History>(`${base}/history${after}`, undefined, stop.signal);
      if (range > 0) return;
      if (history && after && !next.reset) {
        if (next.metrics.length === 0) next.metrics = history.metrics;
        next.points = history.points.concat(next.points).slice(-5000);
        const last = history.marks.at(-1);
        const longer = last && next.continued ? [{ ...last, times: last.times + next.continued.times, until: next.continued.until }] : [];
        next.marks = merged(history.marks, [...longer, ...next.marks]);
      }
      history = next;
      marks = [...next.marks].reverse();
      remark("history", next.note);
      plot.update(next);
      drawMarks();
      if (wanted) {
        const mark = marks.find((one) => Math.abs(one.t - wanted) < 1) ?? marks.find((one) => one.t <= wanted && wanted <= one.until);
        if (mark) choose(mark, false);
        else remark("decision", `The decision at ${moment(wanted)} is not kept: the latest is shown.`);
        wanted = 0;
      }
    } catch (error) {
      fail("history", error);
    }
  }

  function drawMarks(): void {
    const focused = (document.activeElement as HTMLElement | null)?.dataset["t"];
    marksList.replaceChildren(
      ...marks.slice(0, 200).map((mark) => {
        const [from, to] = [mark.from ?? "?", mark.to ?? "?"];
        const moved = from === to ? String(to) : mark.changed ? `${from} → ${to}` : `${from} (${to})`;
        return h(
          "li",
          {},
          h(
            "button",
            {
              class: `mark-row${mark.failed ? " failing" : mark.changed ? " changed" : ""}${chosen?.t === mark.t ? " selected" : ""}`,
              "data-t": mark.t,
              "aria-pressed": chosen?.t === mark.t ? "true" : "false",
              onclick: () => choose(mark, true),
              onfocus: () => chosen?.t !== mark.t && choose(mark, true),
            },
            h("span", { class: "t", title: moment(mark.t) }, clock(mark.t)),
            h("span", { class: "n" }, moved),
            h("span", { class: "s" }, name(mark.sentence), mark.times > 1 && h("span", { class: "dim" }, ` ×${mark.times}`)),
          ),
        );
      }),
    );
    if (marks.length === 0) marksList.append(h("li", { class: "empty" }, "None is recorded."));
    if (focused) marksList.querySelector<HTMLElement>(`[data-t="${CSS.escape(focused)}"]`)?.focus();
  }

  function choose(mark: Mark | null, direct: boolean): void {
    chosen = mark && (marks.find((one) => one.t === mark.t) ?? mark);
    replace({ at: chosen ? String(chosen.t) : "" });
    plot.choose(chosen);
    latest.hidden = !chosen;
    for (const button of marksList.querySelectorAll<HTMLElement>("button")) {
      const is = button.dataset["t"] === String(chosen?.t);
      button.classList.toggle("selected", is);
      button.setAttribute("aria-pressed", String(is));
      // Only the list scrolls: the page stays under the cursor.
      if (is && !direct) marksList.scrollTop = button.offsetTop - marksList.offsetTop - marksList.clientHeight / 2;
    }
    clearTimeout(resting);
    const at = chosen?.t ?? 0;
    const known = explained.get(at);
    const title = chosen ? `Why, at ${moment(chosen.t)}` : "Why";
    remark("decision", "");
    if (known) return explain(known, title);
    resting = window.setTimeout(async () => {
      try {
        const found = await get<Why>(`${base}/why?at=${at}`, undefined, stop.signal);
        explained.set(at, found);
        if ((chosen?.t ?? 0) === at) explain(found, title);
      } catch (error) {
        if (!stop.signal.aborted && chosen) explain({ headline: "", rows: [{ label: "", text: chosen.sentence, decided: false }] }, title);
        if (!(error instanceof RequestError)) fail("decision", error);
      }
    }, direct ? 0 : REST_MS);
  }

  function explain(words: Why, title: string): void {
    setText(when, title);
    why.replaceChildren(
      h("p", { class: "headline" }, name(words.headline)),
      h(
        "dl",
        {},
        ...words.rows.flatMap((row) => [
          h("dt", {}, row.label),
          h("dd", { class: row.decided ? "decided" : "" }, name(row.text), row.decided && h("strong", {}, "← this decided")),
        ]),
      ),
    );
  }

  let before = store.rows.get(id);
  const offer = () => {
    ranges.hidden = !store.snapshot?.sources?.some((one) => one.kind === "Prometheus" && one.health === "ok");
  };
  offer();
  const end = store.subscribe(() => {
    offer();
    refreshAges(lists, store.at);
    const row = store.rows.get(id);
    if (store.isListed && !row && !gone) fail("object", new RequestError(404, ""));
    // The object has changed or is back.
    else if (row && row !== before) void load();
    before = row;
  });
  void load();
  void more();
  const timer = setInterval(() => {
    if (document.hidden || gone) return;
    if (range === 0) void more();
    // Events come also while the row stays the same.
    if (performance.now() >= triedAt + OBJECT_PERIOD_MS) void load();
  }, HISTORY_PERIOD_MS);

  return {
    element,
    title: `${id} · Plimsoll`,
    key(event) {
      const by: Record<string, number> = { j: 1, k: -1, ArrowLeft: 1, ArrowRight: -1 };
      // Wide tables and the YAML are scrolled by arrows.
      const isScrolled = event.target instanceof Element && event.target.closest("[tabindex='0']");
      const step = isScrolled && event.key.startsWith("Arrow") ? undefined : by[event.key];
      if (step !== undefined) {
        const at = chosen ? marks.findIndex((mark) => mark.t === chosen?.t) : -1;
        const next = marks[Math.min(Math.max(0, at + step), marks.length - 1)];
        if (next) choose(next, false);
        return true;
      }
      if (event.key === "Escape" && chosen) choose(null, true);
      else if (event.key === "Escape" || event.key === "u") goToList();
      else return false;
      return true;
    },
    close() {
      stop.abort();
      clearInterval(timer);
      clearTimeout(resting);
      plot.close();
      end();
    },
  };
}

/** A time, with its date if that is not today's. */
function moment(seconds: number): string {
  const day = (at: number) => new Date(at * 1000).toISOString().slice(0, 10);
  const date = store.at > 0 && day(seconds) === day(store.at) ? "" : `${day(seconds)} `;
  return `${date}${clock(seconds)} UTC`;
}

/** A decision that continues replaces what was known of it. */
function merged(before: Mark[], after: Mark[]): Mark[] {
  const all = new Map(before.map((mark) => [mark.t, mark]));
  for (const mark of after) all.set(mark.t, mark);
  return [...all.values()].sort((a, b) => a.t - b.t).slice(-2000);
}

function facts(found: Detail, isOpen: boolean): HTMLElement[] {
  const head = (...titles: string[]) => h("thead", {}, h("tr", {}, ...titles.map((text) => h("th", { scope: "col" }, text))));
  const conditions = found.conditions.map((one) =>
    h(
      "tr",
      {},
      h("td", {}, name(one.type)),
      h("td", {}, one.status),
      h("td", {}, name(one.reason)),
      h("td", { class: "text" }, name(one.message)),
      h("td", { class: "number" }, one.since === null ? "–" : ago(one.since, store.at)),
    ),
  );
  const events = found.events.map((one) =>
    h(
      "tr",
      { class: one.type === "Warning" ? "warning" : "" },
      h("td", { class: "number" }, one.at === null ? "–" : ago(one.at, store.at), one.count > 1 && ` ×${one.count}`),
      h("td", {}, name(one.reason)),
      h("td", { class: "text" }, name(one.message)),
      h("td", {}, name(one.from)),
    ),
  );
  const none = (text: string) => h("p", { class: "empty" }, text);
  return [
    h("section", {}, h("h2", {}, "Conditions"), conditions.length > 0 ? wide("conditions", h("table", {}, head("Type", "Status", "Reason", "Message", "Since"), h("tbody", {}, ...conditions))) : none("None: no controller has reconciled it yet.")),
    h("section", {}, h("h2", {}, "Events"), events.length > 0 ? wide("events", h("table", {}, head("Age", "Reason", "Message", "From"), h("tbody", {}, ...events))) : none(found.eventsError === null ? "None is kept." : `Events cannot be read: ${found.eventsError}`)),
    h("section", {}, h("details", { open: isOpen }, h("summary", {}, "YAML"), h("pre", { tabindex: 0 }, found.yaml))),
  ];
}
