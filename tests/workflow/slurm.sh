#!/usr/bin/env bash
# A SLURM of two nodes with two fake GPUs each on one machine, for the tests of workflow/profiles/slurm. Needs root and
# the packages slurmctld, slurmd, slurm-client and munge; everything it writes, its key included, is in FOLDER,
# but for an empty /etc/slurm.
#
#   tests/workflow/slurm.sh FOLDER    start it; end it, with all of its jobs, when the standard input ends
#
# Meanwhile, `export SLURM_CONF=FOLDER/slurm.conf` leads sbatch, squeue and the others to it. Each node has a host
# name and process ids of its own, so that nothing passes here that only works where all nodes are one. There is no
# slurmdbd, no cgroup and no systemd.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
folder=$(cd "$1" && pwd)
nodes=2
gpus=2
export SLURM_CONF=$folder/slurm.conf
host=$(hostname -s)

# The first of some ports in a row that nobody listens on: of the controller; nodes follow.
free_ports() {
    local first port
    for first in $(seq $((20000 + $$ % 20000)) 50 60000); do
        for port in $(seq "$first" $((first + nodes))); do
            ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || continue 2
        done
        echo "$first"
        return
    done
}

configure() {
    local node gpu port
    port=$(free_ports)
    cat >"$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
AuthType=auth/munge
# A requeued job waits until the credential of its first start has expired.
AuthInfo=socket=$folder/munge.socket,cred_expire=5
StateSaveLocation=$folder/controller
SlurmdSpoolDir=$folder/spool.%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=5
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
MinJobAge=300
KillWait=10
# Nodes have the cores and the memory that rules ask for, whatever this machine has.
SlurmdParameters=config_overrides
JobRequeue=1
GresTypes=gpu
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
    : >"$folder/gres.conf"
    echo "127.0.0.1 localhost $host" >"$folder/hosts"
    for node in $(seq "$nodes"); do
        echo "NodeName=n$node NodeAddr=127.0.0.1 Port=$((port + node)) CPUs=32 RealMemory=256000 Gres=gpu:$gpus" \
            >>"$SLURM_CONF"
        echo "127.0.0.1 n$node" >>"$folder/hosts"
        for gpu in $(seq 0 $((gpus - 1))); do
            : >"$folder/gpu$gpu"
            echo "NodeName=n$node Name=gpu File=$folder/gpu$gpu" >>"$folder/gres.conf"
        done
    done
}

up() {
    configure
    mkdir -p "$folder/controller" /etc/slurm
    (umask 077 && head -c 1024 /dev/urandom >"$folder/munge.key")
    munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
        --log-file="$folder/munged.log" --seed-file="$folder/munged.seed" 2>>"$folder/munged.log"
    slurmctld -c
    for node in $(seq "$nodes"); do
        mkdir -p "$folder/spool.n$node"
        # Ending `unshare` ends all processes of the node. Its /etc/slurm is the folder: jobs lose SLURM_CONF.
        setsid unshare --uts --pid --fork --kill-child --mount-proc sh -ec "
            hostname n$node
            mount --bind '$folder/hosts' /etc/hosts
            mount --bind '$folder' /etc/slurm
            exec slurmd -D -N n$node
        " >>"$folder/slurmd.n$node.out" 2>&1 </dev/null &
        echo $! >"$folder/node.n$node.pid"
        disown # its end is no news
    done
    for _ in $(seq 300); do
        if [ "$(sinfo --noheader --format '%T %D' 2>&1)" = "idle $nodes" ]; then
            sinfo --Node --format '%N %T %c %m %G'
            return
        fi
        sleep 0.1
    done
    tail -n 5 "$folder"/*.log "$folder"/*.out >&2
    echo "after half a minute its nodes are: $(sinfo --noheader --format '%T %D' 2>&1)" >&2
    exit 1
}

down() {
    local file pid
    for file in "$folder"/node.*.pid "$folder/slurmctld.pid" "$folder/munged.pid"; do
        pid=$(cat "$file" 2>/dev/null) || continue
        kill -KILL "$pid" 2>/dev/null || true
    done
}

trap down EXIT
up
cat >/dev/null
