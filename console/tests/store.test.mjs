// The live state, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundled } from "./bundled.mjs";

/** The connections that were opened. */
const opened = [];
globalThis.document = { hidden: false };
/** What a browser would log. */
const errors = [];
const { setTimeout } = globalThis;
globalThis.setTimeout = (call, ms) => setTimeout(() => {
  try {
    call();
  } catch (error) {
    errors.push(error);
  }
}, ms);
globalThis.requestAnimationFrame = globalThis.setTimeout;
globalThis.EventSource = class extends EventTarget {
  isClosed = false;
  constructor() {
    super();
    opened.push(this);
  }
  close() {
    this.isClosed = true;
  }
  send(type, data) {
    this.dispatchEvent(Object.assign(new Event(type), { data: typeof data === "string" ? data : JSON.stringify(data) }));
  }
};

const { store } = await bundled("store.ts");
const row = (name, more = {}) => ({ id: `shop/hpa/${name}`, namespace: "shop", kind: "hpa", name, target: `Deployment/${name}`, replicas: 1, ...more });
const snapshot = (...rows) => ({ at: 1, rows, problems: [], sources: [], notes: [] });
const change = (...rows) => ({ at: 2, rows, removed: [] });

/** What listeners are told next. */
const told = () => new Promise((done) => { const end = store.subscribe((delta) => { end(); done(delta); }); });

test("changes are joined to known rows, and told together", async () => {
  store.connect();
  opened[0].send("reset", snapshot(row("a"), row("b")));
  assert.ok((await told()).reset);
  opened[0].send("change", change({ id: "shop/hpa/a", replicas: 2 }));
  opened[0].send("change", "not JSON");
  opened[0].send("change", { ...change({ id: "shop/hpa/a", replicas: 3 }, row("c")), removed: ["shop/hpa/b"] });
  const delta = await told();
  assert.deepEqual(errors.splice(0).map((error) => error.name), ["SyntaxError"], "an event that cannot be read does not stop those after it");
  assert.deepEqual([...delta.before].map(([id, before]) => [id, before?.replicas]), [["shop/hpa/a", 1], ["shop/hpa/c", undefined], ["shop/hpa/b", 1]]);
  const a = store.rows.get("shop/hpa/a");
  assert.deepEqual([a.replicas, a.target, [...store.rows.keys()]], [3, "Deployment/a", ["shop/hpa/a", "shop/hpa/c"]]);
});

test("row whose names are not known asks for the whole state, once", async () => {
  const before = opened.length;
  opened.at(-1).send("change", change({ id: "shop/hpa/half", replicas: 2 }, { id: "shop/hpa/a", replicas: 4 }));
  await told();
  assert.equal(store.rows.has("shop/hpa/half"), false);
  assert.equal(store.rows.get("shop/hpa/a").replicas, 4, "the rest is taken over");
  assert.deepEqual([opened.length, opened.at(-2).isClosed, opened.at(-1).isClosed], [before + 1, true, false]);
  opened.at(-1).send("reset", snapshot(row("a"), row("half")));
  assert.ok((await told()).reset);
  assert.equal(store.rows.get("shop/hpa/half").target, "Deployment/half");
  opened.at(-1).send("change", change({ id: "shop/hpa/other", replicas: 2 }));
  await told();
  assert.equal(opened.length, before + 1, "a server that always sends such rows is not asked all the time");
});

test("event that comes while a frame is awaited is read without another one", async () => {
  const frame = globalThis.requestAnimationFrame;
  globalThis.requestAnimationFrame = (call) => {
    globalThis.requestAnimationFrame = frame;
    opened.at(-1).send("change", change({ id: "shop/hpa/a", replicas: 6 }));
    frame(call);
  };
  opened.at(-1).send("change", change({ id: "shop/hpa/a", replicas: 5 }));
  await told();
  assert.equal(store.rows.get("shop/hpa/a").replicas, 5);
  await told();
  assert.equal(store.rows.get("shop/hpa/a").replicas, 6);
});
