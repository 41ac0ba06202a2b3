"""Make the environment `.venv` once, then become what was asked for; `./run` calls this with a suitable Python.

Standard library only, and in syntax that an old Python still reads, so that the wrong one ends in a sentence.
What is installed is stamped by a hash of the requirement files and the version of Python: a changed lock is brought up
to date in place, and a set-up that was interrupted goes on (pip keeps what it has downloaded).
"""

import collections
import glob
import hashlib
import os
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
RECORDS = os.path.join(VENV, "lib", "python*", "site-packages", "*.dist-info")  # pip writes them last
LOG = os.path.join(ROOT, ".venv.log")
OLDEST, NEWEST = (3, 11), (3, 13)  # transformers 5 and pyserini refuse older ones, a dependency has no wheel for newer
SPACE = 4  # GB: 2.4 installed, and what pip unpacks meanwhile
IN_PARALLEL = ["-n", "logical", "--maxprocesses", "4", "--no-loadscope-reorder"]  # of pytest: a process a core, up to 4
EVERY = 10  # seconds between two lines that tell how far pip is
LAST = 8  # lines of pip's that are shown when it fails


def main(arguments):
    """Set up what is missing, then run pytest or the workflow in the place of this process."""
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        stop("needs Python 3.11 to 3.13, and this is %s (%s)" % (sys.version.split()[0], sys.executable))
    device = wanted_device()
    set_up(device)
    os.environ["PATH"] = os.path.dirname(PYTHON) + os.pathsep + os.environ.get("PATH", "")
    os.environ.pop("PYTHONPATH", None)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # nothing was compiled when it was installed: every job would anew
    if arguments[:1] == ["test"]:
        os.chdir(ROOT)
        named = [each for each in arguments[1:] if os.path.exists(each.partition("::")[0])]
        arguments = ["-m", "pytest"] + ([] if named else IN_PARALLEL) + arguments[1:]
    else:
        arguments = [os.path.join(ROOT, "workflow", "start.py")] + arguments
    os.execv(PYTHON, [PYTHON] + arguments)


def wanted_device():
    """Tell which requirements: those for a GPU where NVIDIA's driver answers, unless CDMAE_DEVICE says otherwise."""
    device = os.environ.get("CDMAE_DEVICE")
    if device not in (None, "", "cpu", "gpu"):
        stop("the environment variable CDMAE_DEVICE is %r; allowed: cpu, gpu" % device)
    return device or ("gpu" if succeeds("nvidia-smi", "-L") else "cpu")


def set_up(device):
    """Bring `.venv` up to the requirement files; one process at a time."""
    import fcntl

    files = ["requirements.txt" if device == "cpu" else "requirements-gpu.txt", "requirements-test.txt"]
    if shutil.which("sbatch"):
        files.append("requirements-slurm.txt")  # makes each start of Snakemake half a second slower
    if read(STAMP) == stamp(files) and works():
        return
    if not os.access(ROOT, os.W_OK | os.X_OK):
        stop("%s cannot be written to, where .venv is made; allowed: a checkout of your own, such as a clone" % ROOT)
    with open(os.path.join(ROOT, ".venv.lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("another ./run is setting up .venv; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if read(STAMP) == stamp(files) and works():
            return
        if read(STAMP) is None:
            check_space()
        else:
            os.remove(STAMP)
        if not works("pip"):
            make()
        install(files)
        with open(STAMP, "w") as file:
            file.write(stamp(files))


def works(module="sys"):
    """Tell whether `.venv` has this version of Python, which starts (its base may have gone) and imports a module."""
    program = "import sys, %s; sys.exit(sys.version_info[:2] != %r)" % (module, sys.version_info[:2])
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
    there = sum(os.lstat(os.path.join(top, name)).st_size for top, _, names in os.walk(VENV) for name in names) / 1e9
    free = shutil.disk_usage(ROOT).free / 1e9
    if there + free < SPACE:
        stop("setting up .venv needs about %d GB, and the disk of %s has %.1f GB free" % (SPACE, ROOT, free))


def make():
    """Make an empty `.venv`, in the place of a broken one."""
    shutil.rmtree(VENV, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", VENV], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if made.returncode:
        lines = made.stdout.decode(errors="replace").strip().splitlines()[-LAST:]
        stop("%s -m venv failed:\n  %s" % (sys.executable, "\n  ".join(lines)))


def install(files):
    """Run pip on the requirement files, with its words in a log, and tell on the terminal how far it is."""
    pins = os.path.join(HERE, "constraints.txt")
    with open(pins) as file:
        total = sum("==" in line for line in file)
    say("setting up .venv for %s: about %d packages, a few minutes, once" % (files[0], total))
    command = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    command += ["--no-compile", "-c", pins]  # half the time; what is used is compiled when it is first imported
    for name in files:
        command += ["-r", os.path.join(HERE, name)]
    other = "faiss-gpu" if files[0] == "requirements.txt" else "faiss-cpu"  # the two share a folder: never both
    subprocess.call([PYTHON, "-m", "pip", "uninstall", "--quiet", "--quiet", "--yes", other])
    last = collections.deque(["pip starts"], LAST)
    ended = threading.Event()
    with open(LOG, "w") as log:
        pip = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        threading.Thread(target=tell, args=(last, total, ended), daemon=True).start()
        for line in pip.stdout:
            log.write(line)
            if not line.startswith("WARNING"):
                last.append(line.strip())
    ended.set()
    if pip.wait():
        stop("pip failed; its last words (all of them in %s):\n  %s\nrun again to go on" % (LOG, "\n  ".join(last)))


def tell(last, total, ended):
    """Say every few seconds for how long pip has been at work and what it does; while it installs, it says nothing."""
    begun, installing = time.time(), False
    while not ended.wait(EVERY):
        doing = last[-1]
        installing = installing or any(line.startswith("Installing collected packages") for line in tuple(last))
        if installing:
            doing = "%d of about %d packages installed" % (min(len(glob.glob(RECORDS)), total), total)
        say("%d:%02d  %s" % (divmod(int(time.time() - begun), 60) + (doing[:90],)))


def stamp(files):
    """Hash the requirement files and the version of Python that `.venv` was made with."""
    digest = hashlib.sha256(("%d.%d" % sys.version_info[:2]).encode())
    for name in sorted(files) + ["constraints.txt"]:
        digest.update((read(os.path.join(HERE, name)) or "").encode())
    return digest.hexdigest()


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
