// The console with 10,000 autoscalers against its limits: node tests/bench.mjs. PLIMSOLL names the binary; without it, the mock serves the page,
// and only the frontend is measured.
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { launch, open } from "./browser.mjs";
import { row, start } from "./mock.mjs";

const COUNT = Number(process.env.COUNT ?? 10_000);
const MEASURED_MS = Number(process.env.SECONDS ?? 120) * 1000;
const MAX_MEASURED_MS = 600_000;
const PAINTS = 5;
const LIMITS = { "first paint, ms": 1000, "input latency (95 %), ms": 50, "server per open page, % of a core": 1 };
/** The browser does not report keys that are faster, and rounds to 8 ms. */
const SHORTEST_MS = 16;
/** Ticks of the kernel's clock per second. */
const TICKS = 100;

const folder = await mkdtemp(join(tmpdir(), "plimsoll-bench-"));
const children = [];

async function firstLine(command, words, pattern) {
  const child = spawn(command, words, { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  for await (const line of createInterface({ input: child.stdout })) {
    const found = pattern.exec(line)?.[1];
    if (!found) continue;
    child.stdout.resume();
    return { found, child };
  }
  throw new Error(`${command} ended`);
}

/** Seconds of processor time that a process has used. */
async function processorTime(pid) {
  const fields = (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** A mock whose rows change as fast as those of a cluster: one in fifteen each second. */
async function mocked() {
  const states = (i) => (i % 100 === 0 ? "failing" : i % 70 === 0 ? "atMax" : "fine");
  const one = (i, turn) => row(`team-${i % 100}/hpa/service-${i}`, { state: states(i), pressure: ((i * 7 + turn * 13) % 200) / 100, replicas: 2 + ((i + turn) % 18), metrics: `cpu: ${(i * 7 + turn * 13) % 120}%/60%` });
  const mock = await start({ rows: Array.from({ length: COUNT }, (_, i) => one(i, 0)) });
  let turn = 0;
  const timer = setInterval(() => {
    turn += 1;
    const rows = [];
    for (let i = turn % 15; i < COUNT; i += 15) rows.push({ ...one(i, turn), steps: undefined });
    mock.push({ rows });
  }, 1000);
  return { url: mock.url, pid: null, stop: () => (clearInterval(timer), mock.stop()) };
}

/** The console of a binary, and an API server with many HPAs. */
async function served() {
  const { found: port } = await firstLine(process.execPath, [new URL("api-server.mjs", import.meta.url).pathname, String(COUNT)], /^(\d+)$/);
  const config = { apiVersion: "v1", kind: "Config", "current-context": "a", clusters: [{ name: "c", cluster: { server: `http://127.0.0.1:${port}` } }], users: [{ name: "u", user: {} }], contexts: [{ name: "a", context: { cluster: "c", user: "u" } }] };
  await writeFile(join(folder, "kubeconfig"), JSON.stringify(config));
  const { found: url, child } = await firstLine(process.env.PLIMSOLL, ["console", "--no-browser", "--port", "0", "--kubeconfig", join(folder, "kubeconfig")], /console\s+(http\S+)/);
  return { url, pid: child.pid, stop: async () => {} };
}

async function measure() {
  const { url, pid, stop } = await (process.env.PLIMSOLL ? served() : mocked());
  const browser = await launch();
  // The first page lets the console read the cluster; the page that is measured finds its list.
  const first = await open(browser, url);
  await first.page.waitForSelector("a.name");
  const { page } = await open(browser, url);
  const paints = [];
  for (let i = 0; i < PAINTS; i += 1) {
    await page.reload();
    paints.push(await page.evaluate(() => new Promise((done) => {
      const look = () => (document.querySelector("a.name") ? requestAnimationFrame(() => setTimeout(() => done(performance.now()))) : requestAnimationFrame(look));
      look();
    })));
  }
  await first.close();
  // From a key to the frame on the screen that has its effect, while changes arrive. A timer would measure too much: it also waits for later keys.
  await page.evaluate((shortest) => {
    globalThis.keys = 0;
    globalThis.delays = [];
    document.addEventListener("keydown", () => (globalThis.keys += 1), true);
    const note = (list) => globalThis.delays.push(...list.getEntries().filter((one) => one.name === "keydown").map((one) => one.duration));
    new PerformanceObserver(note).observe({ type: "event", durationThreshold: shortest });
  }, SHORTEST_MS);
  const before = pid && (await processorTime(pid));
  const began = Date.now();
  const shownTime = () => page.evaluate(() => document.querySelector("time")?.textContent);
  const start = await shownTime();
  let isLive = false;
  for (let i = 0; Date.now() - began < (isLive ? MEASURED_MS : MAX_MEASURED_MS); i += 1) {
    await page.keyboard.press(["j", "k", "G", "g"][i % 4]);
    if (i % 20 === 0) {
      await page.keyboard.press("/");
      for (const letter of "service-99") await page.keyboard.press(letter);
      await page.keyboard.press("Escape");
      isLive ||= (await shownTime()) !== start;
    }
    await sleep(200);
  }
  const used = pid && (await processorTime(pid)) - before;
  const took = Date.now() - began;
  if (!isLive) throw new Error("no change arrived while it was measured");
  const { keys, delays } = await page.evaluate(() => ({ keys: globalThis.keys, delays: globalThis.delays }));
  while (delays.length < keys) delays.push(SHORTEST_MS);
  delays.sort((a, b) => a - b);
  await browser.close();
  await stop();
  const server = pid ? { "server per open page, % of a core": (100 * used * 1000) / took } : {};
  return {
    "first paint, ms": paints.sort((a, b) => a - b)[Math.floor(PAINTS / 2)],
    "input latency (95 %), ms": delays[Math.floor(delays.length * 0.95)],
    ...server,
  };
}

let failed = false;
try {
  for (const [what, value] of Object.entries(await measure())) {
    const isMet = value <= LIMITS[what];
    failed ||= !isMet;
    console.log(`${isMet ? "  " : "✗ "}${what.padEnd(36)} ${value.toFixed(2).padStart(9)}   at most ${LIMITS[what]}`);
  }
} finally {
  for (const child of children) child.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
