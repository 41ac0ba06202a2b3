"""Make the environment `.venv` once, then become what was asked for; `./run` calls this with a
suitable Python.

Standard library only, and in syntax that an old Python still reads, so that the wrong one ends in a
sentence. pip installs the files of lock/, and takes only packages whose hashes they list;
CDMAE_UNLOCKED=1 installs the same versions from the requirement files instead, from wherever pip
finds them, without looking at hashes. `.venv` is stamped by a hash of each file that was installed
and of the version of Python: a changed lock is brought up to date in place, and a set-up that was
interrupted goes on (pip keeps what it has downloaded).
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
RECORDS = os.path.join(
    VENV, "lib", "python*", "site-packages", "*.dist-info"
)  # pip writes them last
LOG = os.path.join(ROOT, ".venv.log")
OLDEST, NEWEST = (
    (3, 11),
    (3, 13),
)  # transformers 5 and pyserini refuse older ones, a dependency has no wheel for newer
SPACE = 4  # GB: 2.4 installed, and what pip unpacks meanwhile
PIP = "lock/pip.txt"
TORCH = "lock/torch.txt"
CPU_TORCH = "lock/torch-cpu.txt"
BEGUN = time.time()
UNLOCK = (
    "CDMAE_UNLOCKED=1 ./run installs the same versions from wherever pip finds them, "
    "without looking at hashes"
)
IN_PARALLEL = [
    "-n",
    "logical",
    "--maxprocesses",
    "4",
    "--no-loadscope-reorder",
]  # of pytest: a process a core, up to 4
EVERY = 10  # seconds between two lines that tell how far pip is
LAST = 8  # lines of pip's that are shown when it fails


def main(arguments):
    """Set up what is missing, then run pytest or the workflow in the place of this process."""
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        stop(
            "needs Python 3.11 to 3.13, and this is %s (%s)"
            % (sys.version.split()[0], sys.executable)
        )
    set_up(wanted_files(wanted_device(), tests=arguments[:1] == ["test"]))
    os.environ["PATH"] = os.path.dirname(PYTHON) + os.pathsep + os.environ.get("PATH", "")
    os.environ.pop("PYTHONPATH", None)
    os.environ.pop(
        "PYTHONDONTWRITEBYTECODE", None
    )  # nothing was compiled when it was installed: every job would anew
    if arguments[:1] == ["test"]:
        os.chdir(ROOT)
        named = [each for each in arguments[1:] if os.path.exists(each.partition("::")[0])]
        arguments = ["-m", "pytest"] + ([] if named else IN_PARALLEL) + arguments[1:]
    else:
        arguments = [os.path.join(ROOT, "workflow", "start.py")] + arguments
    os.execv(PYTHON, [PYTHON] + arguments)


def wanted_device():
    """Tell which requirements: those for a GPU where NVIDIA's driver answers, unless CDMAE_DEVICE
    says otherwise.
    """
    device = os.environ.get("CDMAE_DEVICE")
    if device not in (None, "", "cpu", "gpu"):
        stop("the environment variable CDMAE_DEVICE is %r; allowed: cpu, gpu" % device)
    return device or ("gpu" if succeeds("nvidia-smi", "-L") else "cpu")


def wanted_files(device, tests):
    """Name the files of envs/ to install, in their order."""
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
    """Bring `.venv` up to these files; one process at a time."""
    import fcntl

    if stamped(files) and works():
        return
    if not os.access(ROOT, os.W_OK | os.X_OK):
        stop(
            "%s cannot be written to, where .venv is made; "
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
    """Tell whether `.venv` has this version of Python, which starts (its base may have gone) and
    imports a module.
    """
    program = "import sys, %s; sys.exit(sys.version_info[:2] != %r)" % (
        module,
        sys.version_info[:2],
    )
    return succeeds(PYTHON, "-c", program)


def succeeds(*command):
    """Tell whether a command is there and ends well; what it says is not shown."""
    try:
        with open(os.devnull, "w") as nowhere:
            return subprocess.call(command, stdout=nowhere, stderr=nowhere) == 0
    except OSError:
        return False


def check_space():
    """Stop where the disk is too small for what is still to be installed."""
    there = (
        sum(
            os.lstat(os.path.join(top, name)).st_size
            for top, _, names in os.walk(VENV)
            for name in names
        )
        / 1e9
    )
    free = shutil.disk_usage(ROOT).free / 1e9
    if there + free < SPACE:
        stop(
            "setting up .venv needs about %d GB, and the disk of %s has %.1f GB free"
            % (SPACE, ROOT, free)
        )


def make():
    """Make an empty `.venv`, in the place of a broken one."""
    shutil.rmtree(VENV, ignore_errors=True)
    made = subprocess.run(
        [sys.executable, "-m", "venv", VENV], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if made.returncode:
        lines = made.stdout.decode(errors="replace").strip().splitlines()[-LAST:]
        stop("%s -m venv failed:\n  %s" % (sys.executable, "\n  ".join(lines)))


def install(files):
    """Install the files, and stop with pip's last words where it fails."""
    locked = "constraints.txt" not in files
    device = "cpu" if {"lock/cpu.txt", "requirements.txt"} & set(files) else "gpu"
    likely = (
        ["constraints.txt"]
        if not locked
        else [name for name in files if name != TORCH or CPU_TORCH not in files]
    )
    total = sum(
        line[:1].isalpha()
        for name in likely
        for line in read(os.path.join(HERE, name)).splitlines()
    )
    say(
        "setting up .venv for a %s: about %d packages, a few minutes, once"
        % (device.upper(), total)
    )
    other = "faiss-gpu" if device == "cpu" else "faiss-cpu"  # the two share a folder: never both
    subprocess.call([PYTHON, "-m", "pip", "uninstall", "--quiet", "--quiet", "--yes", other])
    open(LOG, "w").close()
    if locked:
        rest = [name for name in files if name not in (PIP, CPU_TORCH, TORCH)]
        failed = pip([PIP], total) or pip(rest, total) or torch(files, total)
    else:
        failed = pip(files, total)
    if failed:
        advice = remedy(failed) if locked else "run again to go on"
        stop(
            "pip failed; its last words (all of them in %s):\n  %s\n%s"
            % (LOG, "\n  ".join(failed), advice)
        )


def torch(files, total):
    """Install torch: its CPU build where no GPU is asked for and pip finds it, else PyPI's; return
    as `pip` does.
    """
    if CPU_TORCH in files:
        if not pip([CPU_TORCH], total):
            return []
        say(
            "pip finds no CPU build of torch that the lock lists and takes PyPI's, "
            "on Linux with 3 GB for CUDA"
        )
    return pip([TORCH], total)


def pip(files, total):
    """Install some files, with pip's words in a log, and tell how far it is; return its last words
    if it fails.
    """
    command = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    command += ["--no-compile"]  # half the time; what is used is compiled when it is first imported
    if "constraints.txt" not in files:
        command += [
            "--no-deps",
            "--no-build-isolation",
        ]  # the lists are complete; setuptools is in the first of them
    for name in files:
        command += ["-c" if name == "constraints.txt" else "-r", os.path.join(HERE, name)]
    last = collections.deque(["pip starts"], LAST)
    ended = threading.Event()
    with open(LOG, "a") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True
        )
        threading.Thread(target=tell, args=(last, total, ended), daemon=True).start()
        for line in process.stdout:
            log.write(line)
            if not line.startswith("WARNING"):
                last.append(line.strip())
    ended.set()
    return list(last) if process.wait() else []


def remedy(words):
    """Say what to do about a failure that pip's last words tell of."""
    said = "\n".join(words)
    if "DO NOT MATCH THE HASHES" in said:
        return (
            "this file is not the locked one, and was not installed; if it is meant to be used, "
            + UNLOCK
        )
    if "No matching distribution found" in said:
        machine = "Python %d.%d on %s" % (sys.version_info[:2] + (platform.machine(),))
        return "the lock has nothing for %s that pip finds; %s" % (machine, UNLOCK)
    return "run again to go on"


def tell(last, total, ended):
    """Say every few seconds for how long pip has been at work and what it does; while it installs,
    it says nothing.
    """
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
    """Hash each file, with the version of Python that `.venv` was made with."""
    lines = []
    for name in files:
        text = "%d.%d" % sys.version_info[:2] + (read(os.path.join(HERE, name)) or "")
        lines.append("%s %s" % (hashlib.sha256(text.encode()).hexdigest(), name))
    return lines


def stamped(files):
    """Tell whether these files, and perhaps others, are what was installed last."""
    return set(stamps(files)) <= set((read(STAMP) or "").splitlines())


def read(path):
    """Return the text of a file, or None where there is none."""
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return None


def say(text):
    """Print one line that tells where it comes from."""
    sys.stderr.write("cdmae: %s\n" % text)
    sys.stderr.flush()


def stop(text):
    """End with one sentence."""
    say(text)
    sys.exit(1)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        stop("stopped from the keyboard; run again to go on")
