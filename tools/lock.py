#!/usr/bin/env python3
"""Make the lock files anew, from `requirements/*.in`, `pyproject.toml` and `npm/**/package.json`.

    python tools/lock.py [--upgrade]     without it, versions stay as they are where they still fit

Locks hold hashes and no addresses. Standard library only; it makes its own environments, as `env.py` does.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from env import (
    ENVS,
    LOGS,
    REQUIREMENTS,
    ROOT,
    exit_code,
    make_node,
    make_python,
    node_program,
    npm_program,
    only_run,
    run,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


def make_locks(*, upgrade: bool) -> None:
    """Make every lock file anew; without `upgrade`, versions stay as they are where they still fit."""
    log = LOGS / "lock.log"
    log.unlink(missing_ok=True)
    make_python(ENVS / "lock", REQUIREMENTS / "lock.txt", log=log)
    make_node(log)
    runtime = REQUIREMENTS / "runtime.txt"
    compile_lock(runtime, [ROOT / "pyproject.toml"], upgrade=upgrade, log=log)
    dev = [ROOT / "pyproject.toml", REQUIREMENTS / "dev.in"]
    compile_lock(REQUIREMENTS / "dev.txt", dev, upgrade=upgrade, log=log, constraint=runtime)
    for source in [*sorted(REQUIREMENTS.glob("servers/*.in")), REQUIREMENTS / "node.in", REQUIREMENTS / "lock.in"]:
        compile_lock(source.with_suffix(".txt"), [source], upgrade=upgrade, log=log)
    for package in sorted((ROOT / "npm").glob("**/package.json")):
        lock_npm(package.parent, upgrade=upgrade, log=log)


def compile_lock(
    target: Path, sources: Sequence[Path], *, upgrade: bool, log: Path, constraint: Path | None = None
) -> None:
    """Resolve for every platform and Python version at once, with the hash of every file of a release."""
    flags = ["--universal", "--generate-hashes", "--python-version", "3.11", "--no-config", "--quiet"]
    flags += ["--custom-compile-command", "make lock"]
    if constraint is not None:
        flags += ["--constraint", str(constraint.relative_to(ROOT))]
    if upgrade:
        flags.append("--upgrade")
    names = [str(source.relative_to(ROOT)) for source in sources]
    uv = ENVS / "lock" / "bin" / "uv"
    run([uv, "pip", "compile", *flags, *names, "--output-file", target.relative_to(ROOT)], log=log)


def lock_npm(folder: Path, *, upgrade: bool, log: Path) -> None:
    """Lock an npm folder by integrity alone: no address of a registry, and nobody's home page."""
    with tempfile.TemporaryDirectory(dir=ENVS) as scratch:
        for name in ("package.json", "package-lock.json"):
            if (folder / name).exists() and not (upgrade and name == "package-lock.json"):
                shutil.copyfile(folder / name, Path(scratch) / name)
        flags = ["--package-lock-only", "--ignore-scripts", "--omit-lockfile-registry-resolved", "--no-audit"]
        binaries = node_program().parent
        run([npm_program(), "install", *flags], log=log, cwd=Path(scratch), path=binaries)
        lock = json.loads((Path(scratch) / "package-lock.json").read_text(encoding="utf-8"))
    locked = {path.rpartition("node_modules/")[2] for path in lock["packages"]}
    for package in lock["packages"].values():
        # npm passes over an optional package that the registry does not have; `npm ci` then misses it.
        optional = package.get("optionalDependencies", {})
        for absent in [name for name in optional if name not in locked]:
            del optional[absent]
        for unwanted in ("resolved", "funding", "deprecated"):
            package.pop(unwanted, None)
    text = json.dumps(lock, indent=2, ensure_ascii=False)
    (folder / "package-lock.json").write_text(text + "\n", encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lock.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--upgrade", action="store_true")
    wanted = parser.parse_args(arguments)

    def work() -> int:
        with only_run():
            make_locks(upgrade=wanted.upgrade)
        return 0

    return exit_code("lock", work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
