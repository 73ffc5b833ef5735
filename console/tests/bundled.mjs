// Modules of the frontend, for tests without a browser.
import { build } from "esbuild";

/** Imports a file of src. */
export async function bundled(file) {
  const { outputFiles } = await build({ entryPoints: [new URL(`../src/${file}`, import.meta.url).pathname], bundle: true, format: "esm", write: false });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}
