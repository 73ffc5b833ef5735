// Bundles src/ into ../crates/web-console/assets, or with --check compares the bundle with the committed files.
import { build } from "esbuild";
import { mkdir, readFile, writeFile } from "node:fs/promises";

const assets = new URL("../crates/web-console/assets/", import.meta.url);
// The licence of uPlot asks for its text in copies.
const licence = await readFile(new URL("node_modules/uplot/LICENSE", import.meta.url), "utf8");
const result = await build({
  absWorkingDir: new URL(".", import.meta.url).pathname,
  entryPoints: { app: "src/main.ts" },
  bundle: true,
  minify: true,
  charset: "utf8",
  format: "esm",
  target: ["es2022"],
  legalComments: "inline",
  banner: { js: `/*! Contains uPlot.\n${licence.trim()}\n*/` },
  outdir: "out",
  write: false,
});
const files = result.outputFiles.map((file) => [file.path.split("/").pop(), file.text]);
for (const name of ["index.html", "icon.svg"]) {
  files.push([name, await readFile(new URL(`src/${name}`, import.meta.url), "utf8")]);
}
let stale = 0;
await mkdir(assets, { recursive: true });
for (const [name, text] of files) {
  const place = new URL(name, assets);
  if (!process.argv.includes("--check")) {
    await writeFile(place, text);
    console.log(`${name}: ${text.length} bytes`);
    continue;
  }
  const committed = await readFile(place, "utf8").catch(() => "");
  if (committed !== text) {
    stale += 1;
    console.error(`error: crates/web-console/assets/${name} does not match console/src\n  remedy: make console`);
  }
}
process.exit(stale === 0 ? 0 : 1);
