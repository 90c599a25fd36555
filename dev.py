#!/usr/bin/env python3
"""One command for everything done to this checkout: `python dev.py demo`, `python dev.py test`, ...

Role: make a private environment, install tracemill into it, run something there.

Invariants: needs the standard library only; the system Python is never changed; everything made
lies in git-ignored folders of this checkout; an interrupted command goes on where it stopped; what
goes wrong is said in one sentence. pip's own settings (PIP_INDEX_URL, PIP_NO_INDEX,
PIP_FIND_LINKS, ...) are honoured by being inherited.

Not here: what a test needs and which may be skipped (tests/conftest.py), what is benchmarked
(benchmarks/). This file parses on old Pythons, so that it can say that they are too old.
"""

import errno
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 11)
CHECKOUT = Path(__file__).resolve().parent
LAYERS = {
    "tracemill": "frontend",
    "compiler": "compiler",
    "runtime": "runtime",
    "backends": "backends",
}
PACKAGED = ["pyproject.toml", "setup.py", "README.md", "LICENSE", *LAYERS.values()]
SPACE = {"test": 1.0, "examples": 1.0, "dev": 1.6, "bench": 9.0}  # GB once installed, rounded up
MADE_HERE = (
    ".venv .venv-bench .typepath .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist out"
    " demo-output tracemill.egg-info"
).split()


class Stop(Exception):
    """The command cannot go on; its text is one sentence for the person who typed it."""


def say(text):
    """Print one line of our own, told apart from what the tools print."""
    print("dev.py: " + text, flush=True)


# What can go wrong, in one sentence each


def starts(name):
    """Whether a Python of this name is installed and starts."""
    try:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.call([name, "-c", ""], **quiet) == 0
    except OSError:
        return False


def check_python(version=sys.version_info, starts=starts):
    """Stop unless this Python is new enough; name a newer one that is installed."""
    if tuple(version[:2]) >= OLDEST:
        return
    wanted = "{}.{}".format(*OLDEST)
    newer = [name for name in ("python3.13", "python3.12", "python3.11") if starts(name)]
    advice = "run `{} dev.py ...`".format(newer[0]) if newer else "install a newer one"
    raise Stop(
        "tracemill needs Python {} or newer and this is Python {}.{}; {}".format(
            wanted, version[0], version[1], advice
        )
    )


def os_sentence(problem, folder):
    """Say what an OSError under `folder` means."""
    if problem.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
        return "the disk that holds {} is full: free some space and try again".format(folder)
    if problem.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "this user may not write in {}: clone into a folder you own".format(folder)
    return "could not write {}: {}".format(problem.filename or folder, problem.strerror or problem)


SENTENCES = [
    (r"No space left on device|Errno 28|Disk quota exceeded", "the disk is full"),
    (r"Permission denied|Errno 13|Read-only file system", "a folder could not be written"),
    (
        r"NewConnectionError|NameResolutionError|name resolution|Name or service not known"
        r"|Network is unreachable|ConnectTimeout|ReadTimeout|ProxyError|getaddrinfo"
        r"|Connection (refused|reset|aborted|broken)|Max retries exceeded|Retrying \(Retry",
        "the package index could not be reached: check the network, or set PIP_INDEX_URL to one"
        " that can be, or PIP_NO_INDEX=1 and PIP_FIND_LINKS to a folder of wheels",
    ),
]


def pip_sentence(output, environ):
    """Say in one sentence why pip failed, from what it printed."""
    missing = re.search(
        r"(?:No matching distribution found for|satisfies the requirement) (\S+)", output
    )
    if missing and environ.get("PIP_NO_INDEX"):
        place = environ.get("PIP_FIND_LINKS") or "PIP_FIND_LINKS, which is not set"
        return "no wheel of {} for this Python in {}".format(missing.group(1), place)
    for pattern, sentence in SENTENCES:
        if re.search(pattern, output):
            return sentence
    if missing:
        return "the package index has no {} for this Python and machine".format(missing.group(1))
    errors = [line for line in output.splitlines() if line.lower().startswith("error")]
    return "pip failed: {}".format(errors[-1] if errors else "see its output above")


def check_space(folder, extra):
    """Stop before a download that cannot fit."""
    free = shutil.disk_usage(str(folder)).free / 1e9
    if free < SPACE[extra]:
        raise Stop(
            "the disk that holds {} has {:.1f} GB free and this needs about {:.1f} GB: free some"
            " space and try again".format(folder, free, SPACE[extra])
        )


# The environment


def clean_environ(environ):
    """The environment variables for what we start: none can redirect an install or an import."""
    drop = {"PYTHONPATH", "PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT"}
    kept = {name: value for name, value in environ.items() if name not in drop}
    kept.update(PYTHONNOUSERSITE="1", PYTHONUNBUFFERED="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
    return kept


def creation_command(folder, find=importlib.util.find_spec, which=shutil.which):
    """The command that makes a virtual environment with pip in it; Stop if there is none."""
    if find("venv") and find("ensurepip"):
        return [sys.executable, "-m", "venv", str(folder)]
    if find("virtualenv"):
        return [sys.executable, "-m", "virtualenv", str(folder)]
    if which("virtualenv"):
        return ["virtualenv", "-p", sys.executable, str(folder)]
    package = "python{}.{}-venv".format(*sys.version_info[:2])
    advice = (
        "apt-get install " + package
        if which("apt-get")
        else "python3 -m pip install --user virtualenv"
    )
    raise Stop("this Python has neither venv nor virtualenv; run `{}` and try again".format(advice))


class Environment:
    """A virtual environment of ours in the checkout, and a record of what it already holds."""

    def __init__(self, name):
        self.folder = CHECKOUT / name
        self.python = str(self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
        self.record_file = self.folder / "tracemill-dev.json"
        self.record = {}

    def remember(self, **facts):
        """Note what has been done, by one rename, so that an interruption leaves the old note."""
        self.record.update(facts)
        new = self.record_file.with_suffix(".new")
        new.write_text(json.dumps(self.record, indent=1))
        os.replace(str(new), str(self.record_file))

    def make(self):
        """Make the environment unless a usable one is there."""
        if self.record_file.exists():
            try:
                self.record = json.loads(self.record_file.read_text())
            except ValueError:
                say("{} is damaged; beginning afresh".format(self.record_file))
        elif self.folder.exists() and any(self.folder.iterdir()):
            raise Stop("{} was not made by dev.py: move it away and try again".format(self.folder))
        if self.record.get("made") == [sys.version, str(self.folder)] and self.works():
            return
        command = creation_command(self.folder)
        if self.folder.exists():
            shutil.rmtree(str(self.folder))
        say("making an environment in {}".format(self.folder))
        self.folder.mkdir(parents=True)
        self.record = {}
        self.remember(made=None)
        done = subprocess.run(
            command, env=clean_environ(os.environ), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        if done.returncode:
            output = done.stdout.decode(errors="replace")
            print(output, flush=True)
            raise Stop(
                pip_sentence(output, {}).replace("pip failed", "could not make the environment")
            )
        self.remember(made=[sys.version, str(self.folder)])

    def works(self):
        """Whether the environment's own Python still starts and has pip."""
        try:
            return subprocess.run([self.python, "-c", "import pip"]).returncode == 0
        except OSError:
            return False

    def pip(self, *arguments):
        """Run pip, showing what it prints; Stop with the reason if it fails."""
        command = [self.python, "-m", "pip", *arguments]
        process = subprocess.Popen(
            command, env=clean_environ(os.environ), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        lines = []
        for raw in process.stdout:
            lines.append(raw.decode(errors="replace"))
            if not lines[-1].startswith("Requirement already satisfied"):
                print(lines[-1], end="", flush=True)
        if process.wait():
            raise Stop(pip_sentence("".join(lines), os.environ))

    def run(self, *arguments):
        """Run this environment's Python in the checkout and return its exit status."""
        return subprocess.call(
            [self.python, *arguments], cwd=str(CHECKOUT), env=clean_environ(os.environ)
        )

    def wheel(self):
        """Build the wheel from a copy of the sources, which stay clean; return its path."""
        digest = source_digest()
        folder = self.folder / "wheels"
        if self.record.get("wheel") != digest or not list(folder.glob("*.whl")):
            needed = project()["build-system"]["requires"]
            if self.record.get("build requirements") != needed:
                say("installing what builds the wheel")
                self.pip("install", *needed)
                self.remember(**{"build requirements": needed})
            say("building the wheel")
            copy = self.folder / "wheel-source"
            for old in (copy, folder):
                shutil.rmtree(str(old), ignore_errors=True)
            copy_sources(copy)
            self.pip(
                "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), str(copy)
            )
            shutil.rmtree(str(copy))
            self.remember(wheel=digest)
        return str(next(folder.glob("*.whl")))

    def install(self, extra, editable=False):
        """Install tracemill with one of its extras: from a fresh wheel, or editable."""
        self.make()
        target, wanted = str(CHECKOUT), "editable"
        if not editable:
            target, wanted = self.wheel(), source_digest()
        mode = ["-e"] if editable else []
        if self.record.get("tracemill") != wanted:
            say("installing tracemill from {}".format(target))
            self.remember(tracemill=None)
            self.pip("install", "-q", "--force-reinstall", "--no-deps", *mode, target)
            self.remember(tracemill=wanted)
        if self.record.get("extra " + extra) != requirements_digest():
            if not any(note.startswith("extra ") for note in self.record):
                check_space(self.folder, extra)
            say("installing what tracemill[{}] needs".format(extra))
            self.add_requirements(extra, [*mode, target])
            self.remember(**{"extra " + extra: requirements_digest()})

    def install_tools(self):
        """Have the checkers of `test` or `dev`, whichever tracemill is installed beside them."""
        self.make()
        if requirements_digest() not in (
            self.record.get("extra test"),
            self.record.get("extra dev"),
        ):
            self.install("test")

    def add_requirements(self, extra, target):
        """Install an extra as a whole; for the peers of `bench`, else those that can be."""
        try:
            self.pip("install", *target[:-1], "{}[{}]".format(target[-1], extra))
        except Stop as stop:
            if extra != "bench":
                raise
            say("not every peer can be installed ({}); trying them one by one".format(stop))
            self.pip("install", *target)
            for requirement in project()["project"]["optional-dependencies"]["bench"]:
                try:
                    self.pip("install", "-q", requirement)
                except Stop as reason:
                    say("without {}: {}".format(requirement, reason))


def project():
    """pyproject.toml as data."""
    import tomllib  # not in the old Pythons, which reach check_python only

    return tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))


def requirements_digest():
    """Changes when pyproject.toml does."""
    return hashlib.sha256((CHECKOUT / "pyproject.toml").read_bytes()).hexdigest()


def sources():
    """The files a wheel is built from, in a fixed order."""
    for name in PACKAGED:
        path = CHECKOUT / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                yield file


def source_digest():
    """Changes when any file the wheel is built from changes, comes or goes."""
    digest = hashlib.sha256()
    for file in sources():
        digest.update(repr((file.relative_to(CHECKOUT).as_posix(), file.read_bytes())).encode())
    return digest.hexdigest()


def copy_sources(folder):
    """Copy what the wheel is built from."""
    for file in sources():
        copy = folder / file.relative_to(CHECKOUT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(str(file), str(copy))


def lay_typepath(folder):
    """Lay the four folders out as they are installed, for type checkers and editors."""
    shutil.rmtree(str(folder), ignore_errors=True)
    package = folder / "tracemill"
    package.mkdir(parents=True)
    entries = [(path.name, path) for path in (CHECKOUT / LAYERS["tracemill"]).iterdir()]
    entries += [(name, CHECKOUT / name) for name in LAYERS if name != "tracemill"]
    for name, path in entries:
        if name == "__pycache__":
            continue
        try:
            os.symlink(str(path), str(package / name), target_is_directory=path.is_dir())
        except OSError:  # Windows without the right to make links
            (shutil.copytree if path.is_dir() else shutil.copyfile)(str(path), str(package / name))


# The commands


def workers():
    """How many test processes to run: the processors we may use, two at least and four at most."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:
        count = os.cpu_count() or 2
    return str(min(4, max(2, count)))


def run_tests(tier, arguments):
    """Run pytest against the installed wheel; -P keeps the checkout off the import path."""
    environment = Environment(".venv")
    environment.install("test" if tier == "test" else "dev")
    options = ["--installed", "--tier", tier, "-n", workers(), "--dist", "worksteal"]
    return environment.run("-P", "-m", "pytest", *options, *arguments)


def demo(arguments):
    """Train a digit classifier and write a report (examples/digits.py)."""
    environment = Environment(".venv")
    environment.install("examples")
    return environment.run("examples/digits.py", *arguments)


def test(arguments):
    """Run the tests that need nothing but this machine's processor."""
    return run_tests("test", arguments)


def test_all(arguments):
    """Run those and the ones that need more tools; a missing tool is a failure."""
    return run_tests("test-all", arguments)


def nightly(arguments):
    """Run everything, the long campaigns too."""
    return run_tests("nightly", arguments)


def bench(arguments):
    """Time tracemill beside its peers, in an environment that no test shares."""
    environment = Environment(".venv-bench")
    environment.install("bench")
    return environment.run("-m", "benchmarks", *arguments)


def docs(arguments):
    """Write the generated pages of docs/ (`--check` says which are out of date)."""
    environment = Environment(".venv")
    environment.install("test")
    return environment.run("-P", "docs/generate.py", *arguments)


def dev(arguments):
    """Install the checkout itself (editable) with every development tool, for working on it."""
    environment = Environment(".venv")
    environment.install("dev", editable=True)
    lay_typepath(CHECKOUT / ".typepath")
    say("ready: {} imports tracemill from this checkout".format(environment.python))
    return 0


def lint(arguments):
    """Check style and format with ruff (`python dev.py lint --fix` repairs what it can)."""
    environment = Environment(".venv")
    environment.install_tools()
    fix = "--fix" in arguments
    checked = environment.run("-m", "ruff", "check", *(["--fix"] if fix else []), ".")
    formatted = environment.run("-m", "ruff", "format", *([] if fix else ["--check"]), ".")
    return checked or formatted


def typecheck(arguments):
    """Check the package's types with mypy."""
    environment = Environment(".venv")
    environment.install_tools()
    lay_typepath(CHECKOUT / ".typepath")
    return environment.run("-m", "mypy", "-p", "tracemill", *arguments)


def clean(arguments):
    """Remove everything these commands have made."""
    for name in MADE_HERE:
        if (CHECKOUT / name).exists():
            say("removing {}".format(CHECKOUT / name))
            shutil.rmtree(str(CHECKOUT / name))
    return 0


COMMANDS = {
    "demo": demo,
    "test": test,
    "test-all": test_all,
    "nightly": nightly,
    "bench": bench,
    "docs": docs,
    "dev": dev,
    "lint": lint,
    "typecheck": typecheck,
    "clean": clean,
}


def usage():
    """The commands, a line each."""
    lines = ["usage: python dev.py command [what the tool behind it takes, such as -k fuse]", ""]
    lines += ["  {:10} {}".format(n, c.__doc__.splitlines()[0]) for n, c in COMMANDS.items()]
    return "\n".join(lines)


def main(argv):
    """Run one command; return its exit status."""
    if not argv or argv[0] in ("help", "-h", "--help"):
        print(usage())
        return 0
    if argv[0] not in COMMANDS:
        print("there is no command {!r}\n{}".format(argv[0], usage()))
        return 2
    try:
        check_python()
        return COMMANDS[argv[0]](argv[1:])
    except Stop as stop:
        say(str(stop))
    except OSError as problem:
        say(os_sentence(problem, CHECKOUT))
    except KeyboardInterrupt:
        say("interrupted; the same command goes on from here")
        return 130
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
