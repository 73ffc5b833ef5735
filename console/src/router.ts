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

export function start(handler: Show): void {
  show = handler;
  addEventListener("popstate", () => show(new URL(location.href)));
  document.addEventListener("click", (event) => {
    const anchor = (event.target as Element | null)?.closest?.("a");
    if (!anchor || event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || anchor.target) return;
    const url = new URL(anchor.href);
    if (url.origin !== location.origin) return;
    event.preventDefault();
    go(url.pathname + url.search);
  });
  show(new URL(location.href));
}

export function go(path: string): void {
  history.pushState(null, "", path);
  show(new URL(location.href));
}

/** Changes the URL without a new page: filters, the chosen decision. */
export function replace(params: Record<string, string>): void {
  const url = new URL(location.href);
  for (const [key, value] of Object.entries(params)) {
    if (value) url.searchParams.set(key, value);
    else url.searchParams.delete(key);
  }
  if (url.href !== location.href) history.replaceState(null, "", url);
}

export function pathOf(id: string): string {
  return `/autoscalers/${id.split("/").map(encodeURIComponent).join("/")}`;
}
