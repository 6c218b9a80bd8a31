// Python in a worker: loads Pyodide and the packages, and answers the requests of the page.

import { loadPyodide } from "./pyodide/pyodide.mjs";

const here = (name) => new URL(name, import.meta.url);

async function bytes(name) {
  const response = await fetch(here(name));
  if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`);
  return response.arrayBuffer();
}

async function start() {
  const { packages } = JSON.parse(new TextDecoder().decode(await bytes("contents.json")));
  const [pyodide, session, ...archives] = await Promise.all([
    loadPyodide({ indexURL: here("pyodide/").href }),
    bytes("session.py"),
    ...packages.map((name) => bytes(`packages/${name}`)),
  ]);
  const site = pyodide.runPython("import site; site.getsitepackages()[0]");
  for (const archive of archives) pyodide.unpackArchive(archive, "wheel", { extractDir: site });
  pyodide.FS.writeFile(`${site}/session.py`, new Uint8Array(session));
  return pyodide.runPython(
    "from pathlib import Path; import session; session.answering(Path.cwd())",
  );
}

const answering = start();

self.onmessage = async ({ data: { id, request } }) => {
  try {
    const answer = await answering;
    self.postMessage({ id, answer: answer(request) });
  } catch (problem) {
    self.postMessage({ id, problem: String(problem.message ?? problem) });
  }
};
