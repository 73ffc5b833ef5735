// The frame: navigation, search, connection, keys.

import "uplot/dist/uPlot.min.css";
import "./style.css";

import { detail } from "./detail.js";
import { clock, h, setText } from "./dom.js";
import { lab } from "./lab.js";
import { list } from "./list.js";
import { problems, sources } from "./problems.js";
import { type Page, go, goToList, partsOf, start } from "./router.js";
import { store } from "./store.js";

const KEYS: [string, string][] = [
  ["/", "search"],
  ["j k", "next, previous"],
  ["Enter", "open"],
  ["Esc", "back, clear"],
  ["a p s", "all, problems, sources"],
  ["g G", "first, last"],
  ["?", "these keys"],
];

const search = h("input", { type: "search", placeholder: "/ search", "aria-label": "search autoscalers", autocomplete: "off", spellcheck: "false" });
const all = h("a", { href: "/" }, "All");
const bad = h("a", { href: "/problems" }, "Problems");
const live = h("span", { class: "live", role: "status" });
const time = h("time", { class: "time" });
const cluster = h("span", { class: "cluster" });
const header = h("header", {}, h("a", { class: "brand", href: "/" }, "Plimsoll"), h("nav", { "aria-label": "pages" }, all, bad), search, cluster, live, time);
const notes = h("div", { class: "notes" });
const place = h("div", { class: "place" });
const help = h("dialog", { "aria-label": "keys" }, h("h2", {}, "Keys"), h("dl", {}, ...KEYS.flatMap(([key, text]) => [h("dt", {}, key), h("dd", {}, text)])), h("form", { method: "dialog" }, h("button", {}, "close")));
document.body.append(header, notes, place, help);

let page: Page | null = null;
let strip: HTMLElement | null = null;

function show(url: URL): void {
  page?.close?.();
  const [first, ...rest] = partsOf(url.pathname);
  if (first === "autoscalers" && rest.length === 3) page = detail(rest.join("/"), url);
  else if (first === "problems") page = problems();
  else if (first === "sources") page = sources();
  else page = list(url, search);
  place.replaceChildren(page.element);
  document.title = page.title;
  for (const [link, is] of [
    [all, !first],
    [bad, first === "problems" || first === "sources"],
  ] as const) {
    if (is) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  place.scrollTop = 0;
  // Keys scroll the part that has the focus, and screen readers say its name.
  page.element.tabIndex = -1;
  page.element.setAttribute("aria-label", page.title);
  page.element.focus({ preventScroll: true });
}

/** How long a connection is lost before a note says so. */
const LOST_NOTE_MS = 3000;
const WORDS = { connecting: "○ connecting", live: "● live", lost: "✗ reconnecting", expired: "✗ signed out" };

let lostAt: number | null = null;

/** Says since when nothing is live. A connection that comes back at once moves nothing on the page. */
function noteLostConnection(texts: (readonly [string, string])[]): void {
  if (store.connection !== "lost") {
    lostAt = null;
    return;
  }
  if (lostAt === null) {
    lostAt = performance.now();
    setTimeout(frame, LOST_NOTE_MS + 1);
  }
  if (performance.now() < lostAt + LOST_NOTE_MS) return;
  const from = store.at ? `What is shown is from ${clock(store.at)} UTC: the` : "The";
  texts.unshift([`${from} console does not answer.`, "see whether the command that printed this address still runs; the page connects again by itself"]);
}

function frame(): void {
  const snapshot = store.snapshot;
  setText(all, store.isListed ? `All ${store.rows.size.toLocaleString("en")}` : "All");
  const count = snapshot?.problems?.length ?? 0;
  setText(bad, count > 0 ? `Problems ${count}` : "Problems");
  bad.classList.toggle("attention", count > 0);
  setText(live, snapshot?.recording && store.connection === "live" ? "■ recording" : WORDS[store.connection]);
  live.className = `live ${store.connection}`;
  if (store.at) setText(time, `${clock(store.at)} UTC`);
  setText(cluster, snapshot?.cluster ?? "");
  cluster.title = snapshot ? `${snapshot.cluster} · ${snapshot.version}` : "";
  const texts = (snapshot?.notes ?? []).map((note) => [note.text, note.remedy] as const);
  if (store.connection === "expired") {
    texts.unshift(["This address is not valid any more: the console was restarted, or the token is missing.", "open the address that `plimsoll console` or `plimsoll up` printed, with its token"]);
  }
  noteLostConnection(texts);
  const shown = JSON.stringify(texts);
  if (notes.dataset["shown"] !== shown) {
    notes.dataset["shown"] = shown;
    notes.replaceChildren(...texts.map(([text, remedy]) => h("p", {}, h("bdi", {}, text), remedy && h("span", { class: "dim" }, ` remedy: ${remedy}`))));
  }
  if (snapshot?.lab && !strip) {
    strip = lab();
    notes.after(strip);
  }
}

search.addEventListener("keydown", (event) => {
  if (event.key === "Enter" || event.key === "ArrowDown") {
    search.blur();
    page?.key?.(new KeyboardEvent("keydown", { key: event.key }));
    event.preventDefault();
  } else if (event.key === "Escape") {
    search.value = "";
    search.dispatchEvent(new Event("input"));
    search.blur();
  }
  event.stopPropagation();
});
// On other pages a search begins on the list.
search.addEventListener("input", () => {
  if (location.pathname === "/") return;
  const text = search.value;
  go(`/?q=${encodeURIComponent(text)}`);
  search.focus();
});

document.addEventListener("keydown", () => store.pressed(), true);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  const target = event.target as HTMLElement;
  if (target.matches("input, select, textarea")) {
    if (event.key === "Escape") target.blur();
    return;
  }
  const pages: Record<string, string> = { a: "/", p: "/problems", s: "/sources" };
  if (event.key === "/") search.focus();
  else if (event.key === "?") help.showModal();
  else if (page?.key?.(event)) {
    // The page has handled the key.
  } else if (pages[event.key]) go(pages[event.key]!);
  else if (event.key === "Escape" && location.pathname !== "/") goToList();
  else return;
  event.preventDefault();
});

// The token has been exchanged for a cookie; the address bar and the history need not keep it.
const address = new URL(location.href);
if (address.searchParams.has("token")) {
  address.searchParams.delete("token");
  history.replaceState(null, "", address);
}
store.subscribe(frame);
frame();
start(show);
store.connect();
