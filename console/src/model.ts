// The answers of the server (crates/cli/src/commands/console).

export type State = "failing" | "atMax" | "partial" | "fine" | "paused";

/** One autoscaler in the list. */
export interface Row {
  id: string;
  namespace: string;
  kind: string;
  name: string;
  target: string;
  metrics: string;
  state: State;
  pressure: number | null;
  replicas: number | null;
  desired: number | null;
  min: number;
  max: number;
  decision: string;
  /** Changes of the replica count in the last hour: seconds since 1970, count. */
  steps?: [number, number][];
  /** Its names and its values in lower case, which the search makes once. */
  names?: string | undefined;
  values?: string | undefined;
}

/** A cause and the autoscalers that have it. */
export interface Problem {
  cause: string;
  effect: string;
  detail: string;
  remedy: string;
  risk: string;
  state: State;
  since: number | null;
  autoscalers: string[];
}

/** Something that provides metrics or decisions. */
export interface Source {
  name: string;
  kind: string;
  health: "ok" | "failing" | "missing" | "unknown";
  latencyMs: number | null;
  detail: string;
  remedy: string;
}

export interface Note {
  text: string;
  remedy: string;
}

/** Everything that the list needs. */
export interface Snapshot {
  cluster: string;
  version: string;
  at: number;
  lab: boolean;
  /** Whether a recording is shown instead of a cluster. */
  recording?: boolean;
  rows: Row[];
  /** Missing until the autoscalers could be read once. */
  problems?: Problem[];
  sources: Source[];
  notes: Note[];
}

/** What changed since an earlier event. */
export interface Change {
  at: number;
  /** New rows, and of others what changed with a decision; the rest only if the object changed. */
  rows: (Partial<Row> & { id: string })[];
  removed: string[];
  problems?: Problem[];
  sources?: Source[];
  notes?: Note[];
}

export interface WhyRow {
  label: string;
  text: string;
  decided: boolean;
}

export interface Why {
  headline: string;
  rows: WhyRow[];
}

export interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
  since: number | null;
}

export interface ObjectEvent {
  type: string;
  reason: string;
  message: string;
  from: string;
  at: number | null;
  count: number;
}

/** The fields that "what if" can change. */
export interface Fields {
  min: number;
  max: number;
  metrics: { name: string; target: number; unit: string }[];
  up: Rules;
  down: Rules;
}

/** The scaling rules of one direction. */
export interface Rules {
  /** Stabilization window in seconds. */
  window: number;
  select: "max" | "min" | "disabled";
  policies: Policy[];
}

export interface Policy {
  kind: "percent" | "pods";
  value: number;
  /** In seconds. */
  period: number;
}

export interface Detail {
  row: Row;
  why: Why;
  conditions: Condition[];
  events: ObjectEvent[];
  /** Why events cannot be read. */
  eventsError: string | null;
  yaml: string;
  fields: Fields | null;
}

/** One pass of the controller, or one sample of the status. */
export interface Point {
  t: number;
  current: number | null;
  desired: number | null;
  min: number;
  max: number;
  /** In the order of the metrics; null is missing, never zero. */
  values: (number | null)[];
  /** Why the count differs from the proposal: `window`, `rate`, `max`, `min`. */
  held: string;
}

export interface Mark {
  t: number;
  until: number;
  times: number;
  /** Null is a count that could not be read. */
  from: number | null;
  to: number | null;
  changed: boolean;
  failed: boolean;
  sentence: string;
}

export interface History {
  /** `passes`, `decisions` or `status`. */
  source: string;
  note: string;
  cursor: string | null;
  /** Whether this is the whole history; otherwise it continues the one before. */
  reset: boolean;
  metrics: { name: string; target: number | null; unit: string }[];
  points: Point[];
  marks: Mark[];
  /** Passes since the history before that decided the same as its last mark. */
  continued?: { times: number; until: number } | null;
}

export interface Totals {
  podHours: number;
  aboveTargetSeconds: number;
  changes: number;
  worstReactionSeconds: number | null;
  peak: number;
}

export interface WhatIf {
  points: { t: number; before: number; after: number }[];
  before: Totals;
  after: Totals;
  patch: string;
  recorded: string[];
  modelled: string[];
}

export interface Lab {
  loads: { name: string; label: string; unit: string; value: number; max: number; manual: boolean }[];
  faults: { id: string; label: string; active: boolean }[];
}
