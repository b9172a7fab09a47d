#!/bin/bash
# Run longtracerl-qwen3-4b: 4 nodes x 8 GPUs, slime.
# Rendered by `longrl submit`; change the recipe, not this file.
#SBATCH --job-name=longtracerl-qwen3-4b
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:8
# Whole nodes: SLURM gives one core a task and a share of the memory otherwise.
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --partition=gpu
#SBATCH --account=lab
#SBATCH --time=24:00:00
#SBATCH --output=/shared/runs/longtracerl-qwen3-4b/logs/job-%j.out
#SBATCH --open-mode=append
#SBATCH --requeue
# The batch shell alone is told, so that it can ask the trainer to save.
#SBATCH --signal=B:USR1@600
set -euo pipefail

readonly RUN=/shared/runs/longtracerl-qwen3-4b
readonly PYTHON=python3
readonly JOB=${SLURM_JOB_ID:?run this script with sbatch}
readonly SCRIPT=$RUN/job.sh
# Set by `longrl train`: every part runs on this machine, without srun.
readonly LOCAL=${LONGRL_LOCAL:-}
# 75 is EX_TEMPFAIL: saved on request, the same job goes on from there.
readonly STOPPED=75

# --- what every process of the run sees ---------------------------------------------------------
environment() {
  # Megatron overlaps communication in launch order
  export CUDA_DEVICE_MAX_CONNECTIONS=1
  # cluster.interface: the network between the nodes
  export GLOO_SOCKET_IFNAME=bond0
  # compute nodes ask no hub; `longrl prepare` fetched everything
  export HF_HUB_OFFLINE=1
  # the run folder, for hooks that record
  export LONGRL_RUN=/shared/runs/longtracerl-qwen3-4b
  # memory that NCCL maps itself cannot be handed to the engines between phases
  export NCCL_CUMEM_ENABLE=0
  # cluster.environment of the recipe or the site
  export NCCL_IB_TC=160
  # NVLink multicast buffers stay allocated between phases
  export NCCL_NVLS_ENABLE=0
  # cluster.interface: the network between the nodes
  export NCCL_SOCKET_IFNAME=bond0
  # the same; SGLang's router reads this one first
  export NO_PROXY=localhost,127.0.0.1,0.0.0.0,::1
  # leaves multiprocessors to communication, backward
  export NVTE_BWD_LAYERNORM_SM_MARGIN=8
  # leaves multiprocessors to communication, forward
  export NVTE_FWD_LAYERNORM_SM_MARGIN=8
  # slime and Megatron-LM are used from their folders
  export PYTHONPATH=/root/slime:/root/Megatron-LM${PYTHONPATH:+:$PYTHONPATH}
  # lines appear in the log when they are printed
  export PYTHONUNBUFFERED=1
  # an engine that computes one long prompt is silent for minutes, not dead
  export SGLANG_HEALTH_CHECK_TIMEOUT=320
  # the section [track] of the recipe
  export TENSORBOARD_DIR=/shared/runs/longtracerl-qwen3-4b/tensorboard
  # communication buffers are freed at once
  export TORCH_NCCL_AVOID_RECORD_STREAMS=1
  # cluster.interface: the network between the nodes
  export TP_SOCKET_IFNAME=bond0
  # a proxy must not see local traffic
  export no_proxy=localhost,127.0.0.1,0.0.0.0,::1
  # Keys are read here, on the node: they are in no script, argument or log.
  set -a
  # shellcheck source=/dev/null
  source /home/me/.longrl-keys
  set +a
  # The site's own lines; `module` and `conda` read variables that are not set.
  set +u
  module load cuda
  set -u
}

# --- Ray, one per job ---------------------------------------------------------------------------
# Ports and folder follow from the job id, so that two jobs on one node do not meet. 640 x 16 ports
# from 20000 on stay below the range the kernel hands out (32768 and up).
readonly PORT=$((20000 + JOB % 640 * 16))
readonly TEMP=/tmp/longrl-$JOB
readonly HEAD_FILE=$RUN/.head-$JOB
readonly READY_FILE=$RUN/.ready-$JOB
# 70 is EX_SOFTWARE: nothing moved for too long.
readonly STUCK=70
readonly READY_S=600

# Marks our processes for the sweep at the end; Ray renames its workers, which would hide the mark.
marked_environment() {
  environment
  export LONGRL_JOB=$JOB SPT_NOENV=1
}

ray_environment() {
  marked_environment
  # Ray 2.60 heads refuse clients without a token; older ones ignore it.
  export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=$RUN/.token-$JOB
  # Engines and actors hold thousands of sockets.
  ulimit -S -n "$(ulimit -H -n)"
  # An inherited address would join somebody else's Ray.
  unset RAY_ADDRESS
  # The agents of several nodes meet only where nodes share a machine.
  AGENT_PORT=$((PORT + 3 + SLURM_NODEID % 13))
  GPUS=$("$PYTHON" -m launch.job.devices --expected 8)
  # Indices stay, for on a shared node the others are not ours. UUIDs go: slime reads indices only,
  # and without the variable Ray counts from 0.
  case ${CUDA_VISIBLE_DEVICES:-} in *[!0-9,]*) unset CUDA_VISIBLE_DEVICES ;; esac
}

# Ray gives a node 30 s to start, too little on a busy one: until the driver has seen all nodes, it
# is tried three times. Afterwards the first failure is final.
ray_start() {
  local tries code
  # Ray drains for 30 s when told to end; SLURM kills before that, and would leave what has left the
  # step. Nothing of the run is worth waiting for once the job ends.
  trap 'part_sweep; exit 143' TERM
  for tries in 1 2 3; do
    code=0
    "$PYTHON" -m ray.scripts.scripts start --block --log-color=false --disable-usage-stats \
      --num-gpus="$GPUS" --resources="{\"node:$SLURMD_NODENAME\": 1}" \
      --dashboard-agent-listen-port="$AGENT_PORT" --min-worker-port=0 --max-worker-port=0 "$@" &
    wait $! || code=$?
    if [ -e "$READY_FILE" ] || [ $code -gt 128 ]; then break; fi
    echo "$SLURMD_NODENAME: try $tries to start Ray ended with exit code $code"
  done
  exit "$code"
}

part_head() {
  ray_environment
  local address
  address=$("$PYTHON" -m launch.job.address --interface bond0)
  printf '%s\n' "$address" > "$HEAD_FILE.partial"
  mv "$HEAD_FILE.partial" "$HEAD_FILE"
  ray_start --head --node-ip-address="$address" --port="$PORT" --dashboard-host=127.0.0.1 \
    --dashboard-port=$((PORT + 1)) --ray-client-server-port=$((PORT + 2)) --temp-dir="$TEMP"
}

part_worker() {
  ray_environment
  local deadline=$((SECONDS + READY_S)) address head
  until [ -s "$HEAD_FILE" ]; do
    [ $SECONDS -lt $deadline ] || { echo "$SLURMD_NODENAME: the head gave no address in $READY_S s"; exit 1; }
    sleep 1
  done
  head=$(cat "$HEAD_FILE")
  address=$("$PYTHON" -m launch.job.address --towards "$head" --interface bond0)
  "$PYTHON" -m launch.job.address --wait "$head" "$PORT" --seconds "$READY_S"
  ray_start --address="$("$PYTHON" -m launch.job.address --join "$head" "$PORT")" --node-ip-address="$address"
}

part_driver() {
  ray_environment
  exec "$PYTHON" -m launch.job.driver "$RUN" --port "$PORT" --ready "$READY_FILE"
}

# What every process of this job on a node is doing, while it still hangs.
part_stacks() {
  marked_environment
  exec "$PYTHON" -m launch.job.stacks "$RUN"
}

# Ends what is left of this job on a node, and nothing else: only processes that bear our mark.
part_sweep() {
  local file pid
  for file in /proc/[0-9]*/environ; do
    pid=${file//[!0-9]/}
    if [ "$pid" != $$ ] && grep -qzx "LONGRL_JOB=$JOB" "$file" 2>/dev/null; then
      kill -KILL "$pid" 2>/dev/null || true
    fi
  done
  rm -rf -- "$TEMP"
}

# --- the job: one srun step for each part, the first to end ends them all ------------------------
# step WHERE PART: `PART` of this script on the nodes that the options WHERE name. For a subshell:
# srun takes its place, so that a signal to it reaches the step.
step() {
  local part=${!#}
  if [ -n "$LOCAL" ]; then exec bash "$SCRIPT" "$part"; fi
  exec srun --overlap --cpu-bind=none --kill-on-bad-exit=1 "${@:1:$#-1}" \
    apptainer exec --nv --bind /shared/runs:/shared/runs --bind /tmp:/tmp --bind /home/me/.longrl-keys:/home/me/.longrl-keys --bind /shared/models/Qwen3-4B-Thinking-2507:/shared/models/Qwen3-4B-Thinking-2507 /shared/images/longrl.sif bash "$SCRIPT" "$part"
}

ask_to_stop() {
  echo "job $JOB: asked to stop; the run saves and ends"
  printf '%s\n' "job $JOB" > "$RUN/stop"
}

finish() {
  local pid
  trap '' USR1 TERM
  for pid in $(jobs -p); do kill "$pid" 2>/dev/null || true; done
  if [ -n "$LOCAL" ]; then
    bash "$SCRIPT" sweep
  else
    srun --overlap --ntasks-per-node=1 bash "$SCRIPT" sweep || true
  fi
  wait || true
  rm -f -- "$HEAD_FILE" "$READY_FILE" "$RUN/.token-$JOB"
}

job() {
  local nodes first rest="" code=0 pid ended="" pids
  if [ -n "$LOCAL" ]; then
    nodes=("$LOCAL")
  else
    mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
  fi
  first=${nodes[0]}
  rest=$(IFS=,; echo "${nodes[*]:1}")
  mkdir -p "$RUN/logs"
  rm -f -- "$RUN/stop" "$RUN/stopped" "$HEAD_FILE" "$READY_FILE"
  (umask 077; od -An -N32 -tx1 /dev/urandom | tr -d ' \n' > "$RUN/.token-$JOB")
  echo "job $JOB: starts on ${nodes[*]}, restart ${SLURM_RESTART_COUNT:-0}"
  trap finish EXIT
  trap ask_to_stop USR1
  trap 'exit 143' TERM

  step --nodes=1 --ntasks=1 --nodelist="$first" head &
  pids=$!
  if [ -n "$rest" ]; then
    step --nodes=$((${#nodes[@]} - 1)) --ntasks=$((${#nodes[@]} - 1)) --nodelist="$rest" worker &
    pids="$pids $!"
  fi
  LONGRL_NODES=${nodes[*]} step --nodes=1 --ntasks=1 --nodelist="$first" driver &
  local driver=$!

  while [ -z "$ended" ]; do
    code=0
    wait -n || code=$?
    for pid in $driver $pids; do
      if ! kill -0 "$pid" 2>/dev/null; then ended=$pid; break; fi
    done
  done
  if [ "$ended" != $driver ]; then
    echo "job $JOB: Ray ended on a node (exit code $code); see above"
    [ "$code" -ne 0 ] || code=1
  elif [ "$code" -eq $STUCK ]; then
    echo "job $JOB: stacks of every process on every node"
    (step --nodes=${#nodes[@]} --ntasks=${#nodes[@]} --nodelist="$(IFS=,; echo "${nodes[*]}")" stacks) || true
  fi
  if [ "$code" -eq $STOPPED ]; then
    echo "job $JOB: saved; back to the queue"
    finish
    trap - EXIT
    scontrol requeue "$JOB"
  fi
  exit "$code"
}

case ${1:-job} in
  job) job ;;
  # A later job of a chain: nothing left to do is no error.
  chained) export LONGRL_CHAINED=1; job ;;
  head | worker | driver | stacks | sweep) "part_$1" ;;
  *) echo "$0: unknown part $1" >&2; exit 2 ;;
esac
