"""Make the environment `.venv` once, then replace this process by the requested command.

`./run` calls this with a suitable Python. Standard library only, and in a syntax that an old Python
still reads, so the wrong Python ends with a sentence. pip installs the files of lock/, and accepts
only packages with the listed hashes. CDMAE_UNLOCKED=1 installs the same versions from the
requirement files, from any index and without hashes.

`.venv` is stamped by a hash of each installed file and of the version of Python. After a change of
the lock it is updated in place, and an interrupted set-up resumes (pip caches its downloads).
"""

import collections
import glob
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "bin", "python")
STAMP = os.path.join(VENV, "stamp")
# the folders that pip writes last
RECORDS = os.path.join(VENV, "lib", "python*", "site-packages", "*.dist-info")
LOG = os.path.join(ROOT, ".venv.log")
OLDEST = (3, 11)  # transformers 5 and pyserini refuse older versions of Python
NEWEST = (3, 13)  # a dependency has no wheel for newer versions of Python
SPACE = 4  # GB: 2.4 installed, and the files that pip unpacks meanwhile
PIP = "lock/pip.txt"
TORCH = "lock/torch.txt"
CPU_TORCH = "lock/torch-cpu.txt"
BEGUN = time.time()
UNLOCK = "CDMAE_UNLOCKED=1 ./run installs the same versions from any index, without hashes"
# options of pytest: one process per core, at most 4; the tests of a file share a process
IN_PARALLEL = ["-n", "logical", "--maxprocesses", "4", "--dist", "loadfile"]
IN_PARALLEL += ["--no-loadscope-reorder"]  # tests/conftest.py orders the files
EVERY = 10  # seconds between two lines of progress
LAST = 8  # lines of pip's output that are shown when it fails


def main(arguments):
    """Set up missing packages, then replace this process by pytest or the workflow."""
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        stop(
            "needs Python 3.11 to 3.13, and this is %s (%s)"
            % (sys.version.split()[0], sys.executable)
        )
    set_up(wanted_files(wanted_device(), tests=arguments[:1] == ["test"]))
    os.environ["PATH"] = os.path.dirname(PYTHON) + os.pathsep + os.environ.get("PATH", "")
    os.environ.pop("PYTHONPATH", None)
    # pip compiled nothing; without bytecode every job would compile all modules again
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if arguments[:1] == ["test"]:
        os.chdir(ROOT)
        named = [each for each in arguments[1:] if os.path.exists(each.partition("::")[0])]
        arguments = ["-m", "pytest"] + ([] if named else IN_PARALLEL) + arguments[1:]
    else:
        arguments = [os.path.join(ROOT, "workflow", "start.py")] + arguments
    os.execv(PYTHON, [PYTHON] + arguments)


def wanted_device():
    """Return CDMAE_DEVICE; without it, gpu if NVIDIA's driver answers, otherwise cpu."""
    device = os.environ.get("CDMAE_DEVICE")
    if device not in (None, "", "cpu", "gpu"):
        stop("the environment variable CDMAE_DEVICE is %r; allowed: cpu, gpu" % device)
    return device or ("gpu" if succeeds("nvidia-smi", "-L") else "cpu")


def wanted_files(device, tests):
    """List the files of envs/ to install, in order."""
    unlocked = os.environ.get("CDMAE_UNLOCKED")
    if unlocked not in (None, "", "1"):
        stop("the environment variable CDMAE_UNLOCKED is %r; allowed: 1" % unlocked)
    extras = ["test"] if tests else []
    if shutil.which("sbatch"):
        extras.append("slurm")  # makes each start of Snakemake half a second slower
    if unlocked:
        names = [
            "requirements.txt" if device == "cpu" else "requirements-gpu.txt",
            "constraints.txt",
        ]
        return names + ["requirements-%s.txt" % each for each in extras]
    torch = [CPU_TORCH, TORCH] if device == "cpu" else [TORCH]
    return [PIP] + ["lock/%s.txt" % each for each in ["run", device] + extras] + torch


def set_up(files):
    """Update `.venv` to these files; one process at a time."""
    import fcntl

    if stamped(files) and works():
        return
    if not os.access(ROOT, os.W_OK | os.X_OK):
        stop(
            "%s cannot be written to, but .venv is made there; "
            "allowed: a checkout of your own, such as a clone" % ROOT
        )
    with open(os.path.join(ROOT, ".venv.lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("another ./run is setting up .venv; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if stamped(files) and works():
            return
        if read(STAMP) is None:
            check_space()
        else:
            os.remove(STAMP)
        if not works("pip"):
            make()
        install(files)
        with open(STAMP, "w") as file:
            file.write("\n".join(stamps(files)))


def works(module="sys"):
    """Return whether `.venv` has this version of Python, which starts and imports a module.

    It does not start after its base has been removed.
    """
    program = "import sys, %s; sys.exit(sys.version_info[:2] != %r)" % (
        module,
        sys.version_info[:2],
    )
    return succeeds(PYTHON, "-c", program)


def succeeds(*command):
    """Return whether a command exists and succeeds; its output is not shown."""
    try:
        with open(os.devnull, "w") as nowhere:
            return subprocess.call(command, stdout=nowhere, stderr=nowhere) == 0
    except OSError:
        return False


def check_space():
    """Stop if the disk is too small for the packages that are still to be installed."""
    installed = 0
    for top, _, names in os.walk(VENV):
        installed += sum(os.lstat(os.path.join(top, name)).st_size for name in names)
    free = shutil.disk_usage(ROOT).free / 1e9
    if installed / 1e9 + free < SPACE:
        stop(
            "setting up .venv needs about %d GB, and the disk of %s has %.1f GB free"
            % (SPACE, ROOT, free)
        )


def make():
    """Make an empty `.venv`, instead of a broken one."""
    shutil.rmtree(VENV, ignore_errors=True)
    made = subprocess.run(
        [sys.executable, "-m", "venv", VENV], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if made.returncode:
        lines = made.stdout.decode(errors="replace").strip().splitlines()[-LAST:]
        stop("%s -m venv failed:\n  %s" % (sys.executable, "\n  ".join(lines)))


def install(files):
    """Install the files; if that fails, stop with the end of pip's output."""
    locked = "constraints.txt" not in files
    device = "cpu" if {"lock/cpu.txt", "requirements.txt"} & set(files) else "gpu"
    likely = ["constraints.txt"]
    if locked:
        likely = [name for name in files if name != TORCH or CPU_TORCH not in files]
    lines = []
    for name in likely:
        lines += read(os.path.join(HERE, name)).splitlines()
    total = sum(line[:1].isalpha() for line in lines)
    say(
        "setting up .venv for a %s: about %d packages, a few minutes, once"
        % (device.upper(), total)
    )
    other = "faiss_gpu" if device == "cpu" else "faiss_cpu"  # the two share a folder: never both
    if glob.glob(os.path.join(os.path.dirname(RECORDS), other + "-*.dist-info")):
        subprocess.call([PYTHON, "-m", "pip", "uninstall", "--quiet", "--quiet", "--yes", other])
    open(LOG, "w").close()
    if locked:
        rest = [name for name in files if name not in (PIP, CPU_TORCH, TORCH)]
        failed = pip([PIP], total) or pip(rest, total) or torch(files, total)
    else:
        failed = pip(files, total)
    if failed:
        advice = remedy(failed) if locked else "run again to resume"
        stop(
            "pip failed; the end of its output (all of it is in %s):\n  %s\n%s"
            % (LOG, "\n  ".join(failed), advice)
        )


def torch(files, total):
    """Install torch: for a CPU its CPU build if pip finds it, otherwise PyPI's.

    Returns the end of pip's output if it fails, otherwise an empty list.
    """
    if CPU_TORCH in files:
        if not pip([CPU_TORCH], total):
            return []
        say(
            "pip finds no locked CPU build of torch and installs PyPI's, "
            "on Linux with 3 GB for CUDA"
        )
    return pip([TORCH], total)


def pip(files, total):
    """Install some files, log pip's output, and report progress.

    Returns the end of pip's output if it fails, otherwise an empty list.
    """
    command = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    command += ["--no-compile"]  # half the time; modules are compiled when they are imported
    if "constraints.txt" not in files:
        # the lists are complete; setuptools is in the first list
        command += ["--no-deps", "--no-build-isolation"]
    for name in files:
        command += ["-c" if name == "constraints.txt" else "-r", os.path.join(HERE, name)]
    last = collections.deque(["pip starts"], LAST)
    ended = threading.Event()
    with open(LOG, "a") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True
        )
        threading.Thread(target=report, args=(last, total, ended), daemon=True).start()
        for line in process.stdout:
            log.write(line)
            if not line.startswith("WARNING"):
                last.append(line.strip())
    ended.set()
    return list(last) if process.wait() else []


def remedy(words):
    """Return the remedy for a failure, by the end of pip's output."""
    said = "\n".join(words)
    if "DO NOT MATCH THE HASHES" in said:
        return (
            "this file is not the locked one and was not installed; to install it anyway, " + UNLOCK
        )
    if "No matching distribution found" in said:
        machine = "Python %d.%d on %s" % (sys.version_info[:2] + (platform.machine(),))
        return "pip finds no locked package for %s; %s" % (machine, UNLOCK)
    return "run again to resume"


def report(last, total, ended):
    """Report the time and pip's present step every few seconds: pip reports no installation."""
    installing = False
    while not ended.wait(EVERY):
        doing = last[-1]
        installing = installing or any(
            line.startswith("Installing collected packages") for line in tuple(last)
        )
        if installing:
            doing = "%d of about %d packages installed" % (
                min(len(glob.glob(RECORDS)), total),
                total,
            )
        say("%d:%02d  %s" % (divmod(int(time.time() - BEGUN), 60) + (doing[:90],)))


def stamps(files):
    """Hash each file, with the version of Python in `.venv`."""
    lines = []
    for name in files:
        text = "%d.%d" % sys.version_info[:2] + (read(os.path.join(HERE, name)) or "")
        lines.append("%s %s" % (hashlib.sha256(text.encode()).hexdigest(), name))
    return lines


def stamped(files):
    """Return whether the last set-up installed these files, perhaps with others."""
    return set(stamps(files)) <= set((read(STAMP) or "").splitlines())


def read(path):
    """Return the text of a file; None if the file does not exist."""
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return None


def say(text):
    """Print one line with the name of its origin."""
    sys.stderr.write("cdmae: %s\n" % text)
    sys.stderr.flush()


def stop(text):
    """Print a one-sentence message and exit."""
    say(text)
    sys.exit(1)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        stop("stopped from the keyboard; run again to resume")
