// Screenshots of every page: wide and phone, light and dark. node tests/screenshots.mjs FOLDER [URL]
import { mkdir } from "node:fs/promises";
import { launch, open } from "./browser.mjs";
import { row, start } from "./mock.mjs";

const folder = process.argv[2] ?? "out/screenshots";
await mkdir(folder, { recursive: true });
const rows = Array.from({ length: 400 }, (_, i) => row(`team-${i % 7}/hpa/service-${i}`, i % 50 === 3 ? { state: "failing", pressure: null, metrics: "http_requests: <unknown>/100", decision: "held: http_requests cannot be read" } : i % 40 === 7 ? { state: "atMax", replicas: 20, desired: 20, pressure: 1.8, decision: "cpu wants 27; max is 20" } : { pressure: (i % 12) / 10, metrics: `cpu: ${(i % 12) * 6}%/60%, rps: 84/100`, replicas: (i % 9) + 2, desired: (i % 9) + 2 }));
const mock = process.argv[3] ? null : await start({ rows });
const url = process.argv[3] ?? mock.url;
const browser = await launch();
for (const [size, viewport] of [["wide", { width: 1440, height: 900 }], ["phone", { width: 390, height: 844 }]]) {
  for (const colorScheme of ["light", "dark"]) {
    const { page, close } = await open(browser, url, { viewport, colorScheme });
    await page.waitForSelector("a.name");
    await page.screenshot({ path: `${folder}/all-${size}-${colorScheme}.png` });
    await page.goto(new URL("/problems", url).href);
    await page.waitForSelector(".problem, .empty");
    await page.screenshot({ path: `${folder}/problems-${size}-${colorScheme}.png` });
    await page.goto(new URL("/sources", url).href);
    await page.waitForSelector(".sources tbody tr");
    await page.screenshot({ path: `${folder}/sources-${size}-${colorScheme}.png` });
    const id = mock ? "team-3/hpa/service-3" : process.argv[4];
    await page.goto(new URL(`/autoscalers/${id}`, url).href);
    await page.waitForSelector(".mark-row");
    await page.hover(".charts .u-over", { position: { x: 200, y: 60 } });
    await page.waitForTimeout(300);
    await page.screenshot({ path: `${folder}/one-${size}-${colorScheme}.png` });
    await page.waitForSelector(".whatif summary").then((summary) => summary.click());
    await page.fill(".fields label:first-child input", "40");
    await page.waitForSelector(".whatif .patch:visible");
    await page.evaluate(() => document.querySelector(".whatif")?.scrollIntoView());
    await page.screenshot({ path: `${folder}/whatif-${size}-${colorScheme}.png` });
    await close();
  }
}
await browser.close();
await mock?.stop();
