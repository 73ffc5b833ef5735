// Opens a report in a real browser and looks whether it works: `node report.mjs report.html…`
// Needs the npm package playwright-core and a Chromium, whose path is in CHROMIUM (default /usr/bin/chromium).
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
});
const problems = [];

async function look(file, name, options, check) {
  const page = await browser.newPage(options);
  const problem = (text) => problems.push(`${file} (${name}): ${text}`);
  page.on("console", (message) => problem(`console: ${message.text()}`));
  page.on("pageerror", (error) => problem(`error: ${error.message}`));
  page.on("dialog", (dialog) => { problem("a dialog"); dialog.dismiss(); });
  page.on("request", (request) => { if (!request.url().startsWith("file:")) problem(`asked for ${request.url()}`); });
  await page.goto(pathToFileURL(resolve(file)).href);
  await page.waitForTimeout(200);
  const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  if (content > window) problem(`${content} pixels wide in a window of ${window}`);
  await check(page, problem);
  await page.close();
}

/** The first change can be reached with the keyboard and says why. */
async function keyboard(page, problem) {
  const why = page.locator(".changes .why").first();
  if ((await why.count()) === 0) return;
  await page.locator(".changes a").first().click();
  const tip = await page.locator("#tip").innerText();
  if (!tip.includes((await why.innerText()).trim())) problem(`the tip says ${JSON.stringify(tip)}`);
  await page.keyboard.press("ArrowRight");
  if (!(await page.locator("#tip").isVisible())) problem("no tip after →");
}

/** Every workload has charts, and all of them are as wide as the page. */
async function charts(page, problem) {
  for (const workload of await page.locator(".charts").all()) {
    if ((await workload.locator("canvas").count()) === 0) problem("a workload without charts");
  }
}

for (const file of process.argv.slice(2)) {
  await look(file, "wide", { viewport: { width: 1600, height: 1000 } }, keyboard);
  await look(file, "dark", { viewport: { width: 1280, height: 900 }, colorScheme: "dark" }, charts);
  await look(file, "narrow", { viewport: { width: 390, height: 844 } }, charts);
  await look(file, "without scripts", { viewport: { width: 390, height: 844 }, javaScriptEnabled: false }, async () => {});
  await look(file, "print", { viewport: { width: 1280, height: 900 } }, (page) => page.pdf({ format: "A4" }));
}
await browser.close();
problems.forEach((problem) => console.error(problem));
console.log(`${process.argv.length - 2} reports, ${problems.length} problems`);
process.exit(problems.length ? 1 : 0);
