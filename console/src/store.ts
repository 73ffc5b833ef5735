// The live state: a snapshot, then changes by server-sent events. The browser resumes with `Last-Event-ID`.

import type { Change, Row, Snapshot } from "./model.js";

export type Connection = "connecting" | "live" | "lost" | "expired";

const HOUR = 3600;
/** Changes wait until no key was pressed for so long, so that a key is answered before them. */
const QUIET_MS = 100;
/** How long changes wait at most. */
const MAX_WAIT_MS = 1000;
/** Events that wait at most. */
const MAX_UNREAD = 10;
/** How often the whole state is asked for at most, because changes do not follow from it. */
const START_AGAIN_MS = 60_000;
/** How soon a page that nobody sees takes over changes. */
const HIDDEN_MS = 200;

/** What changed in the rows since listeners were told. */
export interface Delta {
  /** Everything may differ. */
  reset: boolean;
  /** Rows as they were before; undefined if there was none. A row that is gone is not in the store any more. */
  before: Map<string, Row | undefined>;
}

type Listener = (delta: Delta) => void;

class Store {
  rows = new Map<string, Row>();
  snapshot: Snapshot | null = null;
  connection: Connection = "connecting";
  /** The time of the server, which may differ from that of the browser. */
  at = 0;
  private listeners = new Set<Listener>();
  private delta: Delta = { reset: false, before: new Map() };
  private scheduled = false;
  /** Events that were not read yet. */
  private texts: string[] = [];
  private keyAt = -Infinity;
  private startedAgainAt = -Infinity;
  private source: EventSource | null = null;

  /** Whether the autoscalers could be read: before that, no rows does not mean that there are none. */
  get isListed(): boolean {
    return this.snapshot?.problems !== undefined;
  }

  subscribe(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** A key was pressed. */
  pressed(): void {
    this.keyAt = performance.now();
  }

  /** Reads events and tells all listeners, at most once per frame and not while keys are pressed. Between two events, and before listeners, a key comes first. */
  changed(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    const end = performance.now() + MAX_WAIT_MS;
    const waits = (): boolean => {
      const rest = Math.min(this.keyAt + QUIET_MS, end) - performance.now();
      if (rest > 0) setTimeout(step, rest);
      return rest > 0;
    };
    const step = (): void => {
      if (waits()) return;
      const text = this.texts.shift();
      if (text === undefined) {
        if (document.hidden) tell();
        else requestAnimationFrame(tell);
        return;
      }
      // Before the event is read: one that cannot be read must not stop those after it.
      setTimeout(step);
      this.apply(JSON.parse(text) as Change);
    };
    const tell = (): void => {
      if (waits()) return;
      this.scheduled = false;
      // Events that came since the frame was requested.
      if (this.texts.length > 0) this.changed();
      const delta = this.delta;
      this.delta = { reset: false, before: new Map() };
      for (const listener of [...this.listeners]) listener(delta);
    };
    setTimeout(step, document.hidden ? HIDDEN_MS : 0);
  }

  connect(): void {
    this.source?.close();
    const source = new EventSource("/api/v1/events");
    this.source = source;
    source.addEventListener("reset", (event) => this.reset(JSON.parse(event.data as string) as Snapshot));
    source.addEventListener("change", (event) => {
      this.texts.push(event.data as string);
      // A page that was hidden has no frames.
      if (this.texts.length > MAX_UNREAD) this.read();
      this.become("live");
    });
    source.onopen = () => this.become("live");
    source.onerror = () => {
      if (this.connection !== "expired") this.become("lost");
      void this.check(source);
    };
  }

  /** A closed stream does not say why: an ordinary request does. */
  private async check(source: EventSource): Promise<void> {
    const answer = await fetch("/api/v1/session").catch(() => null);
    if (source !== this.source) return;
    if (answer?.status === 401) {
      source.close();
      this.become("expired");
    } else if (source.readyState === EventSource.CLOSED) {
      setTimeout(() => source === this.source && this.connect(), 2000);
    }
  }

  private become(connection: Connection): void {
    this.connection = connection;
    this.changed();
  }

  private reset(snapshot: Snapshot): void {
    this.texts = [];
    this.snapshot = snapshot;
    this.at = snapshot.at;
    this.rows = new Map(snapshot.rows.map((row) => [row.id, row]));
    this.delta.reset = true;
    this.become("live");
  }

  private read(): void {
    for (const text of this.texts.splice(0)) this.apply(JSON.parse(text) as Change);
  }

  private apply(change: Change): void {
    if (!this.snapshot) return;
    this.at = change.at;
    let isComplete = true;
    for (const changed of change.rows) {
      if (changed.target === undefined && !this.rows.has(changed.id)) {
        isComplete = false;
        continue;
      }
      const before = this.note(changed.id);
      const row = { ...before, ...changed } as Row;
      if (changed.steps === undefined) row.steps = steps(before, row, change.at);
      if (changed.target !== undefined) row.names = undefined;
      row.values = undefined;
      this.rows.set(row.id, row);
    }
    for (const id of change.removed) {
      this.note(id);
      this.rows.delete(id);
    }
    // An empty list is told too, because it was not known to be empty.
    if (change.problems && !this.isListed) this.delta.reset = true;
    if (change.problems) this.snapshot.problems = change.problems;
    this.snapshot.sources = change.sources ?? this.snapshot.sources;
    this.snapshot.notes = change.notes ?? this.snapshot.notes;
    if (!isComplete) this.startAgain();
  }

  /** Asks for the whole state: without its names, which were sent before, a row cannot be shown. */
  private startAgain(): void {
    const now = performance.now();
    if (now < this.startedAgainAt + START_AGAIN_MS) return;
    this.startedAgainAt = now;
    this.connect();
  }

  /** Remembers the row that listeners know. */
  private note(id: string): Row | undefined {
    const row = this.rows.get(id);
    if (!this.delta.before.has(id)) this.delta.before.set(id, row);
    return row;
  }
}

/** The replica counts of the last hour, with a new one. */
function steps(before: Row | undefined, row: Row, at: number): [number, number][] {
  const all = before?.steps ?? [];
  if (row.replicas !== null && all.at(-1)?.[1] !== row.replicas) all.push([at, row.replicas]);
  // The step that was in force an hour ago is kept.
  while (all.length > 1 && (all[1]?.[0] ?? 0) < at - HOUR) all.shift();
  return all;
}

export const store = new Store();

export class RequestError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Requests JSON of the server. */
export async function get<T>(path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const init: RequestInit = signal ? { signal } : {};
  if (body !== undefined) {
    init.method = "POST";
    init.headers = { "content-type": "application/json" };
    init.body = JSON.stringify(body);
  }
  const answer = await fetch(path, init).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new RequestError(0, "the console does not answer");
  });
  if (!answer.ok) {
    const text = await answer.text();
    let message = text.trim();
    try {
      message = (JSON.parse(text) as { message?: string }).message ?? message;
    } catch {
      // A plain text.
    }
    throw new RequestError(answer.status, message || `status ${answer.status}`);
  }
  return (await answer.json()) as T;
}
