// A server with the answers of the console's API, for tests of the frontend and for screenshots.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";

const ASSETS = new URL("../../crates/web-console/assets/", import.meta.url);
const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml" };
export const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
export const HOSTILE = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>\u202e${"long ".repeat(50)}`;

const now = () => Date.now() / 1000;

/** Fields whose texts come from the cluster. */
const FOREIGN = new Set(["cause", "cluster", "decision", "detail", "effect", "from", "headline", "label", "message", "metrics", "name", "note", "patch", "reason", "remedy", "risk", "sentence", "target", "text", "type", "unit", "version", "yaml"]);

/** The same value with hostile texts. */
function poisoned(value, key) {
  if (typeof value === "string") return FOREIGN.has(key) ? HOSTILE : value;
  if (Array.isArray(value)) return value.map((one) => poisoned(one, key));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, poisoned(one, name)]));
}

export function row(id, more = {}) {
  const [namespace, kind, name] = id.split("/");
  const at = now();
  return {
    id, namespace, kind, name, target: `Deployment/${name}`, metrics: "cpu: 71%/60%", state: "fine", pressure: 1.18,
    replicas: 6, desired: 6, min: 2, max: 20, decision: "stayed: window until 09:21",
    steps: [[at - 3000, 3], [at - 2000, 5], [at - 1200, 8], [at - 300, 6]], ...more,
  };
}

function snapshot(rows, recording, notes, isRead) {
  const failing = rows.filter((one) => one.state === "failing").map((one) => one.id);
  const atMax = rows.filter((one) => one.state === "atMax").map((one) => one.id);
  return {
    cluster: "kind-dev", version: "plimsoll 0.0.0", at: now(), lab: !recording, recording, rows,
    // A server that could not read the autoscalers yet knows nothing about problems.
    problems: !isRead ? undefined : [
      ...(failing.length ? [{ cause: "http_requests cannot be read", effect: "hold", detail: "unable to get metric http_requests: no metrics returned from custom metrics API", remedy: "check that prometheus:9090 answers and that a rule names http_requests", risk: "load may rise without new replicas", state: "failing", since: now() - 360, autoscalers: failing }] : []),
      ...(atMax.length ? [{ cause: "more is wanted than max allows", effect: "at max", detail: "max is 20, metrics want 27", remedy: "raise maxReplicas if the cluster can bear it", risk: "metrics stay above their targets", state: "atMax", since: now() - 1800, autoscalers: atMax }] : []),
    ],
    sources: [
      { name: "http://prometheus.monitoring.svc:9090", kind: "Prometheus", health: "ok", latencyMs: null, detail: "http://prometheus.monitoring.svc:9090", remedy: "" },
      { name: "metrics.k8s.io", kind: "metrics API", health: "ok", latencyMs: 4, detail: "served by kube-system/plimsoll-metrics", remedy: "" },
      { name: "custom.metrics.k8s.io", kind: "metrics API", health: "failing", latencyMs: 5000, detail: "the server is currently unable to handle the request", remedy: "check that its pods run and that its Service leads to them" },
      { name: "external.metrics.k8s.io", kind: "metrics API", health: "missing", latencyMs: null, detail: "not served by this cluster", remedy: "" },
      { name: "kafka", kind: "triggers", health: "ok", latencyMs: null, detail: "12 read in the latest polls", remedy: "" },
    ],
    notes: recording ? [{ text: "This is a recording from 2026-01-05T08:00:00Z to 2026-01-05T09:00:00Z; nothing in it is live.", remedy: "" }] : notes,
  };
}

function why(id, at) {
  const [namespace, kind, name] = id.split("/");
  const time = new Date((at || now()) * 1000).toISOString().slice(11, 19);
  return {
    headline: `${kind}/${name} in ${namespace} · ${time} UTC · scaled 1 → 4 (wanted 7)`,
    rows: [
      { label: "target", text: `Deployment/${name}, 1 replica; selector run=${name} matches 1 pod`, decided: false },
      { label: "pods", text: "1 counted · 0 not yet ready · 0 without metrics · 0 ignored", decided: false },
      { label: "cpu", text: "610m used of 200m requested = 305 %, target 50 %", decided: false },
      { label: "", text: "305 ÷ 50 = 6.10, outside 0.90 … 1.10, so it counts", decided: false },
      { label: "limits", text: "min 1, max 10: 7 stays", decided: false },
      { label: "", text: "no behavior set: at most max(2 × 1, 4) = 4 in one step", decided: true },
      { label: "outcome", text: "replicas 1 → 4; ScalingLimited=True (ScaleUpLimit)", decided: false },
      { label: "next", text: "in 15 s; if load stays, 4 → 7", decided: false },
    ],
  };
}

function history() {
  const end = Math.floor(now() / 15) * 15;
  const points = [];
  const marks = [];
  let count = 2;
  for (let i = 240; i >= 0; i -= 1) {
    const t = end - i * 15;
    const load = 400 + 350 * Math.sin(i / 30) + 40 * Math.sin(i / 3);
    const cpu = load / count;
    const wanted = Math.max(2, Math.min(20, Math.ceil(load / 60)));
    const from = count;
    const held = wanted < count && i % 20 !== 0 ? "window" : wanted > count + 4 ? "rate" : "";
    const next = held === "window" ? count : Math.min(wanted, count + 4);
    points.push({ t, current: count, desired: wanted, min: 2, max: 20, values: [i > 100 && i < 110 ? null : cpu, load / 4 / count], held });
    if (next !== from || i % 60 === 0) marks.push({ t, until: t, times: 1, from, to: next, changed: next !== from, failed: i > 100 && i < 110, sentence: next > from ? `cpu ${cpu.toFixed(0)} % of 60 %` : "stayed: window until 09:21" });
    count = next;
  }
  return { source: "passes", note: "", cursor: "c1", reset: true, metrics: [{ name: "cpu", target: 60, unit: "%" }, { name: "http_requests", target: 20, unit: "/s" }], points, marks };
}

function longer(range) {
  const step = range / 500;
  const end = Math.floor(now() / step) * step;
  const points = Array.from({ length: 500 }, (_, i) => ({ t: end - (500 - i) * step, current: 4 + Math.round(3 * Math.sin(i / 20)), desired: 4, min: 2, max: 20, values: [60], held: "" }));
  return { source: "prometheus", note: "From Prometheus prometheus:9090 in monitoring: one point every 172 s, without decisions.", cursor: null, reset: true, metrics: [{ name: "cpu", target: 60, unit: "%" }], points, marks: [] };
}

/** The JSON of a request. */
const body = (request) => new Promise((done) => { let text = ""; request.on("data", (part) => (text += part)).on("end", () => done(JSON.parse(text))); });

const totals = (podHours, changes) => ({ podHours, aboveTargetSeconds: 420, changes, worstReactionSeconds: 45, peak: 12 });

/** Starts the server. `rows` may be changed; `server.push(change)` sends an event. */
export async function start({ rows, recording = false, hostile = false, notes = [], isRead = true, port = 0 } = {}) {
  const all = rows ?? [row("shop/hpa/checkout"), row("shop/so/orders-worker", { metrics: "queue: 12/5", min: 0, max: 30, replicas: 1, desired: 1, decision: "0 → 1: activated" }), row("web/hpa/frontend", { state: "failing", metrics: "http_requests: <unknown>/100", pressure: null, decision: "held: metric missing 6 min", replicas: 12, min: 3, max: 40 }), row("web/hpa/search", { state: "atMax", replicas: 20, desired: 20, decision: "cpu wants 27; max is 20" }), row("batch/autoscaler/render", { state: "paused", decision: "paused at 3", replicas: 3 })];
  const state = { rows: all, clients: new Set(), valid: true, revision: 1, lab: { loads: [{ name: "php-apache", label: "php-apache", unit: "users/s", value: 6.1, max: 20, manual: false }], faults: [{ id: "metrics", label: "metrics outage", active: false }, { id: "node", label: "lose a node", active: false }] }, resumed: [] };
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://localhost");
    const text = (value) => JSON.stringify(hostile ? poisoned(value) : value);
    const json = (value, code = 200) => response.writeHead(code, { "content-type": "application/json" }).end(text(value));
    if (!url.pathname.startsWith("/api/")) {
      const name = url.pathname.startsWith("/assets/") ? url.pathname.slice(8) : "index.html";
      const body = await readFile(new URL(name, ASSETS)).catch(() => null);
      if (!body) return response.writeHead(404).end();
      return response.writeHead(200, { "content-type": TYPES[name.split(".").pop()], "content-security-policy": CSP }).end(body);
    }
    if (!state.valid) return json({ message: "no session" }, 401);
    const path = url.pathname.slice("/api/v1/".length);
    if (path === "session") return json({});
    if (path === "events") {
      response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
      state.resumed.push(request.headers["last-event-id"] ?? null);
      response.write(`retry: 200\nid: ${state.revision}\nevent: reset\ndata: ${text(snapshot(state.rows, recording, notes, isRead))}\n\n`);
      state.clients.add(response);
      return request.on("close", () => state.clients.delete(response));
    }
    if (path === "lab") {
      if (state.error?.path === "lab" && request.method === "POST") return json({ message: state.error.message }, state.error.code);
      if (request.method === "POST") {
        const change = await body(request);
        for (const load of state.lab.loads) if (load.name === change.load) Object.assign(load, { value: change.value ?? 6.1, manual: change.value !== null });
        for (const fault of state.lab.faults) if (fault.id === change.fault) fault.active = change.active;
      }
      return json(state.lab);
    }
    const [, ...parts] = path.split("/").map(decodeURIComponent);
    const id = parts.slice(0, 3).join("/");
    if (state.error && url.pathname.endsWith(state.error.path)) return json({ message: state.error.message }, state.error.code);
    const found = state.rows.find((one) => one.id === id);
    if (!found) return json({ message: "not found" }, 404);
    if (url.searchParams.has("range")) return json(longer(Number(url.searchParams.get("range"))));
    if (parts[3] === "history") {
      // What is new is sent once.
      const news = state.news ?? {};
      if (url.searchParams.has("after")) state.news = null;
      return json(url.searchParams.has("after") ? { ...history(), reset: false, points: [], metrics: [], marks: [], ...news } : history());
    }
    if (parts[3] === "why") return json(why(id, Number(url.searchParams.get("at"))));
    if (parts[3] === "whatif") {
      const asked = JSON.stringify(await body(request));
      const points = history().points.map((p) => ({ t: p.t, before: p.current, after: Math.max(1, Math.round(p.current * 0.7)) }));
      return json({ points, before: totals(6.2, 14), after: totals(4.4, 10), patch: `spec:\n  minReplicas: 1\n# ${asked}\n`, recorded: ["metric values", "replica counts"], modelled: ["metric values at other replica counts"] });
    }
    return json({
      row: found, why: why(id), yaml: `apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata:\n  name: ${found.name}\n`,
      conditions: [{ type: "AbleToScale", status: "True", reason: "ReadyForNewScale", message: "recommended size matches current size", since: now() - 900 }, { type: "ScalingLimited", status: "True", reason: "TooManyReplicas", message: "the desired replica count is more than the maximum replica count", since: now() - 90 }],
      events: [{ type: "Normal", reason: "SuccessfulRescale", message: "New size: 6; reason: cpu resource utilization above target", from: "horizontal-pod-autoscaler", at: now() - 300, count: 3 }, { type: "Warning", reason: "FailedGetPodsMetric", message: HOSTILE, from: "x", at: now() - 400, count: 1 }],
      eventsError: null,
      fields: { min: found.min, max: found.max, metrics: [{ name: "cpu", target: 60, unit: "%" }], up: { window: 0, select: "max", policies: [{ kind: "percent", value: 100, period: 15 }, { kind: "pods", value: 4, period: 15 }] }, down: { window: 300, select: "max", policies: [{ kind: "percent", value: 100, period: 15 }] } },
    });
  });
  await new Promise((done) => server.listen(port, "127.0.0.1", done));
  const push = (change) => {
    state.revision += 1;
    const text = `id: ${state.revision}\nevent: change\ndata: ${JSON.stringify({ at: now(), rows: [], removed: [], ...change })}\n\n`;
    for (const client of state.clients) client.write(text);
  };
  const stop = () => new Promise((done) => { for (const client of state.clients) client.destroy(); server.close(done); server.closeAllConnections(); });
  return { port: server.address().port, url: `http://127.0.0.1:${server.address().port}`, state, push, stop };
}
