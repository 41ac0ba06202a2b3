#!/bin/sh
# Lock the packages: `make lock` writes envs/lock/*.txt and the conda files from the requirements.
# uv keeps a locked version while the requirements allow it; `make lock UPGRADE=--upgrade` takes the
# newest versions, `UPGRADE="-P numpy"` the newest of one package.
#
#   pip.txt            pip itself, and setuptools, which builds pyserini
#   run.txt            every package of a run except faiss and torch
#   cpu.txt, gpu.txt   faiss for either
#   torch.txt          torch from PyPI, on Linux with CUDA's libraries
#   torch-cpu.txt      kept by hand: PyPI has no CPU build of torch for Linux
#   test.txt, slurm.txt  the tools of the tests; the executor for SLURM
set -eu
cd "$(dirname "$0")"
python=../.venv/bin/python
$python -m pip install --quiet uv==0.13.9

compile() { # the locked file, its requirements, further options
    locked=lock/$1.txt
    requirements=$2
    shift 2
    $python -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --only-binary :all: --no-binary pyserini --no-annotate \
        --custom-compile-command "make lock" --output-file "$locked" "$@" "$requirements"
}

conda() { # the device: everything that the requirements bring, pinned, for --sdm conda, which copies this file
    cat <<END
# Made by \`make lock\`.
channels:
  - conda-forge
dependencies:
  - python=3.11
  - pip
  - pip:
END
    sed "s/^faiss-cpu/faiss-$1/" requirements.txt |
        $python -m uv pip compile --quiet --no-config --python-version 3.11 --python-platform linux \
            --no-header --no-annotate -c lock/run.txt -c lock/torch.txt - |
        grep -vE '^(nvidia|cuda|triton)' | sed 's/^/      - /'
}

compile run requirements.txt --config-file uv.toml \
    --no-emit-package torch --no-emit-package faiss-cpu ${UPGRADE:-}
compile slurm requirements-slurm.txt --config-file uv.toml -c lock/run.txt
compile test requirements-test.txt --config-file uv.toml -c lock/run.txt
grep '^torch' requirements.txt | compile torch - --no-config -c lock/run.txt
grep '^faiss-cpu' requirements.txt | compile cpu - --no-config -c lock/run.txt
grep '^faiss-cpu' requirements.txt | sed s/cpu/gpu/ | compile gpu - --no-config -c lock/run.txt
printf 'pip\nsetuptools\n' | compile pip - --no-config -c lock/run.txt
for device in cpu gpu; do
    conda $device >$device.yaml
done
