// An API server with many HPAs and decisions about them, for the benchmark: node api-server.mjs COUNT. Prints its port.
// Each second one in fifteen HPAs is decided anew: its values change, and in one of twenty of these its replicas.
import { createServer } from "node:http";

const count = Number(process.argv[2]);
const DECISIONS = "decisions.plimsoll.dev/v1alpha1";
/** Seconds of changes that watches and cursors can go back. */
const KEPT_TICKS = 60;
/** Seconds between the decisions about one HPA. */
const PERIOD_TICKS = 15;
const name = (i) => `service-${i}`;
const namespace = (i) => `team-${i % 100}`;
const condition = (type, status, reason, message) => ({ type, status, lastTransitionTime: "2026-01-05T09:00:00Z", reason, message });
const READY = condition("AbleToScale", "True", "ReadyForNewScale", "recommended size matches current size");
const ACTIVE = condition("ScalingActive", "True", "ValidMetricFound", "the HPA was able to successfully calculate a replica count from cpu resource utilization (percentage of request)");
const LIMITED = condition("ScalingLimited", "False", "DesiredWithinRange", "the desired count is within the acceptable range");

function hpa(i, { replicas, percent, version }) {
  const target = { type: "Utilization", averageUtilization: 60 };
  return {
    metadata: { name: name(i), namespace: namespace(i), uid: `00000000-0000-0000-0000-${String(i).padStart(12, "0")}`, resourceVersion: String(version), creationTimestamp: "2026-01-05T08:00:00Z", labels: { app: name(i) } },
    spec: { scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: name(i) }, minReplicas: 2, maxReplicas: 20, metrics: [{ type: "Resource", resource: { name: "cpu", target } }] },
    status: { currentReplicas: replicas, desiredReplicas: replicas, lastScaleTime: "2026-01-05T09:00:00Z", currentMetrics: [{ type: "Resource", resource: { name: "cpu", current: { averageUtilization: percent, averageValue: `${2 * percent}m` } } }], conditions: [READY, ACTIVE, LIMITED] },
  };
}

function decision(i, { replicas, percent, at }) {
  const pods = { ready: replicas, unready: 0, missing: 0, ignored: 0, stray: 0 };
  const sum = { perPod: { pods, usage: 2 * percent * replicas, requests: 200 * replicas, found: percent, target: 60, ratio: percent / 60, assumed: null, count: replicas, kept: "withinTolerance" } };
  const reading = { averageValue: `${2 * percent}m`, averageUtilization: percent };
  const conditions = [READY, ACTIVE, LIMITED].map(({ lastTransitionTime, ...rest }) => ({ ...rest, since: lastTransitionTime }));
  return {
    apiVersion: DECISIONS, kind: "Decision", metadata: { name: `hpa.${name(i)}`, namespace: namespace(i) }, mode: "active", first: at, last: at, times: 1, period: "PT15S",
    spec: { namespace: namespace(i), name: name(i), target: { kind: "Deployment", name: name(i) }, min: 2, max: 20, metrics: [{ source: { resource: { name: "cpu", of: "requests" } }, goal: { utilization: 60 }, onFailure: "kubernetes" }], behavior: null, aggregator: "max" },
    decision: {
      at, scale: { specReplicas: replicas, statusReplicas: replicas, selector: `app=${name(i)}` }, course: "metrics", selected: replicas, tolerances: { down: 0.1, up: 0.1 },
      evaluations: [{ type: "Resource", name: "cpu resource utilization (percentage of request)", result: { Ok: { replicas, reading, sum } } }],
      recommendation: null, normalized: null, desired: replicas, reason: "", outcome: "kept",
      status: { currentReplicas: replicas, desiredReplicas: replicas, lastScaleTime: null, metrics: [null], conditions }, events: [], error: null,
    },
  };
}

function pass(i, one) {
  const { replicas, percent, at } = one;
  const metric = { name: "cpu", value: `${percent}%`, target: "60%", ratio: percent / 60, proposal: replicas, error: null };
  const short = { namespace: namespace(i), name: `hpa.${name(i)}`, at, mode: "active", current: replicas, desired: replicas, min: 2, max: 20, outcome: "kept", reason: `cpu ${percent} % of 60 %`, limit: null, error: null, changed: false, metrics: [metric] };
  return one.isNew ? { ...short, record: decision(i, one) } : short;
}

let version = 1;
let tick = 0;
const state = Array.from({ length: count }, (_, i) => ({ replicas: 2 + (i % 15), percent: 50 + (i % 15), version, at: new Date().toISOString(), isNew: true }));
/** What changed in each tick: the version after it, and the indexes. */
const log = [];
const watchers = new Set();
const event = (i) => `{"type":"MODIFIED","object":${JSON.stringify({ apiVersion: "autoscaling/v2", kind: "HorizontalPodAutoscaler", ...hpa(i, state[i]) })}}\n`;

setInterval(() => {
  tick += 1;
  const changed = [];
  for (let i = tick % PERIOD_TICKS; i < count; i += PERIOD_TICKS) {
    const isNew = (i + tick) % 20 === 0;
    version += 1;
    state[i] = { replicas: isNew ? 2 + ((state[i].replicas + tick) % 18) : state[i].replicas, percent: 50 + ((i + Math.floor(tick / PERIOD_TICKS)) % 15), version, at: new Date().toISOString(), isNew };
    changed.push(i);
  }
  log.push({ tick, version, changed });
  if (log.length > KEPT_TICKS) log.shift();
  const text = changed.map(event).join("");
  for (const watcher of watchers) watcher.write(text);
}, 1000);

const list = (kind, apiVersion, items) => JSON.stringify({ kind, apiVersion, metadata: { resourceVersion: String(version) }, items });

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, "http://localhost");
  const send = (text, code = 200) => response.writeHead(code, { "content-type": "application/json" }).end(text);
  const refuse = (code, reason) => send(JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", message: reason, reason, code }), code);
  if (pathname === "/apis/autoscaling/v2/horizontalpodautoscalers") {
    if (searchParams.get("watch") !== "true") return send(list("HorizontalPodAutoscalerList", "autoscaling/v2", state.map((one, i) => hpa(i, one))));
    const since = Number(searchParams.get("resourceVersion"));
    response.writeHead(200, { "content-type": "application/json" });
    response.write(log.filter((one) => one.version > since).flatMap((one) => one.changed).map(event).join(""));
    watchers.add(response);
    return request.on("close", () => watchers.delete(response));
  }
  if (pathname === `/apis/${DECISIONS}/decisions`) return send(list("DecisionList", DECISIONS, state.map((one, i) => decision(i, one))));
  if (pathname === `/apis/${DECISIONS}/passes`) {
    const after = searchParams.get("after") ?? String(tick);
    const items = log.filter((one) => one.tick > Number(after)).flatMap((one) => one.changed).map((i) => pass(i, state[i]));
    return send(JSON.stringify({ kind: "PassList", apiVersion: DECISIONS, metadata: { cursor: String(tick), remaining: false, lost: false }, items }));
  }
  return refuse(404, "NotFound");
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
