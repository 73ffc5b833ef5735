// An API server with many HPAs and decisions about them, for the benchmark: node api-server.mjs COUNT. Prints its port.
import { createServer } from "node:http";

const count = Number(process.argv[2]);
const name = (i) => `service-${i}`;
const namespace = (i) => `team-${i % 100}`;
const condition = (type, status, reason, message) => ({ type, status, lastTransitionTime: "2026-01-05T09:00:00Z", reason, message });
const READY = condition("AbleToScale", "True", "ReadyForNewScale", "recommended size matches current size");
const ACTIVE = condition("ScalingActive", "True", "ValidMetricFound", "the HPA was able to successfully calculate a replica count from cpu resource utilization (percentage of request)");
const LIMITED = condition("ScalingLimited", "False", "DesiredWithinRange", "the desired count is within the acceptable range");

function hpa(i, replicas) {
  const target = { type: "Utilization", averageUtilization: 60 };
  return {
    metadata: { name: name(i), namespace: namespace(i), uid: `00000000-0000-0000-0000-${String(i).padStart(12, "0")}`, resourceVersion: String(1000 + i), creationTimestamp: "2026-01-05T08:00:00Z", labels: { app: name(i) } },
    spec: { scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: name(i) }, minReplicas: 2, maxReplicas: 20, metrics: [{ type: "Resource", resource: { name: "cpu", target } }] },
    status: { currentReplicas: replicas, desiredReplicas: replicas, lastScaleTime: "2026-01-05T09:00:00Z", currentMetrics: [{ type: "Resource", resource: { name: "cpu", current: { averageUtilization: 55 + (replicas % 10), averageValue: "110m" } } }], conditions: [READY, ACTIVE, LIMITED] },
  };
}

function decision(i, replicas, at) {
  const failure = { reason: "FailedGetResourceMetric", text: "failed to get cpu utilization: no metrics", summary: "failed to get cpu resource metric value: no metrics", class: "internal", pods: { ready: 0, unready: 0, missing: replicas, ignored: 0, stray: 0 }, cause: "noSamples", uncounted: [] };
  const conditions = [READY, ACTIVE, LIMITED].map(({ lastTransitionTime, ...rest }) => ({ ...rest, since: lastTransitionTime }));
  return {
    apiVersion: "decisions.plimsoll.dev/v1alpha1", kind: "Decision", metadata: { name: `hpa.${name(i)}`, namespace: namespace(i) }, mode: "active", first: at, last: at, times: 1, period: "PT15S",
    spec: { namespace: namespace(i), name: name(i), target: { kind: "Deployment", name: name(i) }, min: 2, max: 20, metrics: [{ source: { resource: { name: "cpu", of: "requests" } }, goal: { utilization: 60 }, onFailure: "kubernetes" }], behavior: null, aggregator: "max" },
    decision: {
      at, scale: { specReplicas: replicas, statusReplicas: replicas, selector: `app=${name(i)}` }, course: "metrics", selected: replicas, tolerances: { down: 0.1, up: 0.1 },
      evaluations: [{ type: "Resource", name: "cpu resource utilization (percentage of request)", result: { Err: failure } }],
      recommendation: null, normalized: null, desired: replicas, reason: "", outcome: "failed",
      status: { currentReplicas: replicas, desiredReplicas: replicas, lastScaleTime: null, metrics: [null], conditions }, events: [], error: { text: "failed to compute desired number of replicas: no metrics", class: "internal" },
    },
  };
}

// One in fifteen changes with each answer, as many as decide anew within a second.
const state = Array.from({ length: count }, (_, i) => ({ replicas: 2 + (i % 15) }));
let turn = 0;
const render = (i) => {
  const one = state[i];
  one.hpa = JSON.stringify(hpa(i, one.replicas));
  one.decision = JSON.stringify(decision(i, one.replicas, new Date().toISOString()));
};
for (let i = 0; i < count; i += 1) render(i);

function list(kind, apiVersion, field) {
  return `{"kind":"${kind}","apiVersion":"${apiVersion}","metadata":{"resourceVersion":"9"},"items":[${state.map((one) => one[field]).join(",")}]}`;
}

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url, "http://localhost");
  const send = (text, code = 200) => response.writeHead(code, { "content-type": "application/json" }).end(text);
  if (pathname === "/apis/autoscaling/v2/horizontalpodautoscalers") {
    turn += 1;
    for (let i = turn % 15; i < count; i += 15) {
      state[i].replicas = 2 + ((state[i].replicas + turn) % 18);
      render(i);
    }
    return send(list("HorizontalPodAutoscalerList", "autoscaling/v2", "hpa"));
  }
  if (pathname === "/apis/decisions.plimsoll.dev/v1alpha1/decisions") return send(list("DecisionList", "decisions.plimsoll.dev/v1alpha1", "decision"));
  return send(JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", message: "not found", reason: "NotFound", code: 404 }), 404);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
