#!/bin/bash
# benchmarks/questions.sh [PROGRAM]   what whole predictions cost: seconds and MB, the best of three, one line each
set -eu -o pipefail
program=${1-build/release/cli/simsync}
readonly program
if ! [ -x /usr/bin/time ]; then
  printf 'error: needs GNU time (package time)\n' >&2
  exit 4
fi

# The fastest of three runs of a prediction, and the question.
best() {
  for _ in 1 2 3; do
    /usr/bin/time -f '%e %M' "$program" predict "$@" --csv - 2>&1 >/dev/null | tail -n 1
  done | sort -n | head -n 1 | awk -v question="$*" '{ printf "%6.2f s %4.0f MB  %s\n", $1, $2 / 1024, question }'
}

for workers in 8 64 512 1024 4096 16384; do
  best --model resnet50 --cluster dgx-1 --strategy ddp --workers "$workers" --set straggler=1.5
done
best --model resnet50 --cluster dgx-1 --strategy ddp --workers 512 --set straggler=1.5 --set fidelity=fluid
best --model vgg16 --cluster g4dn.12xlarge --strategy partitioned-ps --workers 64
# One ring all-reduce with every message a flow: 2 n (n - 1) of them.
ring=(--strategy bsp --set fidelity=steps --set strategy.fusion=single --set strategy.algorithm=ring --set iterations=1)
for cluster in dgx-1 titanx-40gbe; do
  for workers in 512 1024; do
    best --model resnet50 --cluster "$cluster" --workers "$workers" "${ring[@]}"
  done
done
