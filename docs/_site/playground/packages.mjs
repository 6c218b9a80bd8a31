// Load packages with Pyodide, which checks their hashes, and print the names of their files.
// A file is taken from the folder, or fetched and kept there.

import { loadPyodide } from "pyodide";

const [folder, ...names] = process.argv.slice(2);
const pyodide = await loadPyodide({ packageCacheDir: folder });
const loaded = await pyodide.loadPackage(names, { messageCallback() {} });
const missing = names.filter((name) => !(name in pyodide.loadedPackages));
if (missing.length) {
  console.error(`Pyodide ${pyodide.version} could not load ${missing.join(", ")}.`);
  process.exit(1);
}
console.log(JSON.stringify(loaded.map(({ fileName }) => fileName)));
