"""Build the playground into a folder, from which `make docs` takes it: the page and its Python.

    python docs/_site/playground/build.py FOLDER

npm installs the editor, Pyodide and esbuild, in the versions and with the hashes of
`package-lock.json`. Pyodide fetches its builds of the packages in `PACKAGES` into FOLDER/packages
and checks their hashes; those that lie there are not fetched. FOLDER/site is what the site takes;
its contents.json is written last.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PACKAGES = ("ml-dtypes", "numpy", "pyrsistent")
"""What pscdsl imports when it checks, by Pyodide's names."""
LOCK = "pyodide-lock.json"
CORE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", LOCK)


def built(folder: Path) -> None:
    """Build everything that the page loads."""
    site = folder / "site"
    shutil.rmtree(site, ignore_errors=True)
    for part in ("pyodide", "packages"):
        (site / part).mkdir(parents=True)
    modules = installed(folder / "npm")
    bundle(modules, site)
    for name in CORE:
        shutil.copy(modules / "pyodide" / name, site / "pyodide")
    packages = fetched(modules, folder / "packages")
    for name in packages:
        shutil.copy(folder / "packages" / name, site / "packages")
    packages.append(wheel(site / "packages"))
    contents = {"packages": packages, "examples": examples()}
    (site / "contents.json").write_text(json.dumps(contents), encoding="utf-8")


def installed(folder: Path) -> Path:
    """Return the folder of the npm packages, installed as `package-lock.json` names them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", "packages.mjs"):
        shutil.copy(HERE / name, folder)
    modules, lock = folder / "node_modules", folder / "package-lock.json"
    stamp = folder / "installed.json"
    if not stamp.exists() or stamp.read_bytes() != lock.read_bytes():
        stamp.unlink(missing_ok=True)
        run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder)
        shutil.copy(lock, stamp)
    return modules


def bundle(modules: Path, site: Path) -> None:
    """Bundle the page's JavaScript; the worker loads Pyodide itself."""
    run(
        *(modules / ".bin" / "esbuild", HERE / "playground.js"),
        f"--outfile={site / 'playground.js'}",
        *("--bundle", "--minify", "--format=esm", "--target=es2022", "--log-level=warning"),
        modules=modules,
    )
    for name in ("worker.js", "session.py", "playground.css"):
        shutil.copy(HERE / name, site)


def fetched(modules: Path, folder: Path) -> list[str]:
    """Return the files of the packages, all of which are in the folder."""
    folder.mkdir(exist_ok=True)
    script = modules.parent / "packages.mjs"
    lock = json.loads((modules / "pyodide" / LOCK).read_text("utf-8"))["packages"]
    files = [lock[name]["file_name"] for name in PACKAGES]
    why = f"; {', '.join(files)} are not fetched if they are in {folder}"
    names: list[str] = json.loads(run("node", script, folder.resolve(), *PACKAGES, why=why))
    return sorted(names)


def wheel(folder: Path) -> str:
    """Return the name of the wheel of this checkout."""
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps")
    run(*pip, "--wheel-dir", folder, ROOT)
    [made] = folder.glob("pscdsl-*.whl")
    return made.name


def examples() -> dict[str, str]:
    """Return the programs to pick from, by title: the first line of each, a comment."""
    texts = [path.read_text("utf-8") for path in sorted((HERE / "examples").glob("*.py"))]
    return {text.partition("\n")[0].removeprefix("# "): text for text in texts}


def run(
    *command: str | Path, cwd: Path | None = None, modules: Path | None = None, why: str = ""
) -> str:
    """Return the output of a command; end with a message if it fails."""
    env = {**os.environ, **({} if modules is None else {"NODE_PATH": str(modules)})}
    try:
        ended = subprocess.run(
            [*map(str, command)], cwd=cwd, env=env, stdout=subprocess.PIPE, text=True, check=False
        )
    except FileNotFoundError as problem:
        sys.exit(f"The playground is not built: there is no {problem.filename}.")
    if ended.returncode:
        sys.exit(f"The playground is not built: `{Path(command[0]).name}` failed{why}.")
    return ended.stdout


if __name__ == "__main__":
    built(Path(sys.argv[1]))
