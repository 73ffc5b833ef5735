// Everything has a URL, and back works.

export interface Page {
  element: HTMLElement;
  title: string;
  /** Keys of this page; true if the key was used. */
  key?: (event: KeyboardEvent) => boolean;
  close?: () => void;
}

type Show = (url: URL) => void;

let show: Show = () => {};
/** The address of the list as it was seen last, with search, filters and order. */
let listPath = "/";

function note(): URL {
  const url = new URL(location.href);
  if (url.pathname === "/") listPath = url.pathname + url.search;
  return url;
}

export function start(handler: Show): void {
  show = handler;
  addEventListener("popstate", () => show(note()));
  document.addEventListener("click", (event) => {
    const anchor = (event.target as Element | null)?.closest?.("a");
    if (!anchor || event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || anchor.target) return;
    const url = new URL(anchor.href);
    if (url.origin !== location.origin) return;
    event.preventDefault();
    go(url.pathname + url.search);
  });
  show(note());
}

export function go(path: string): void {
  history.pushState(null, "", path);
  show(note());
}

/** Opens the list as it was left. */
export function goToList(): void {
  go(listPath);
}

/** Changes the URL without a new page: filters, the chosen decision. */
export function replace(params: Record<string, string>): void {
  const url = new URL(location.href);
  for (const [key, value] of Object.entries(params)) {
    if (value) url.searchParams.set(key, value);
    else url.searchParams.delete(key);
  }
  if (url.href !== location.href) history.replaceState(null, "", url);
  note();
}

/** The parts of a path. One that is not encoded correctly, as in a link that was cut off, stays as it is. */
export function partsOf(pathname: string): string[] {
  const decoded = (part: string): string => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  };
  return pathname.split("/").filter(Boolean).map(decoded);
}

export function pathOf(id: string): string {
  return `/autoscalers/${id.split("/").map(encodeURIComponent).join("/")}`;
}
