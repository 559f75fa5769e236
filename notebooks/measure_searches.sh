#!/bin/bash
# notebooks/measure_searches.sh SIMSYNC FOLDER
# Makes the measurements behind the notebooks again, as root on a machine that has nothing else to do: six searches with
# real trials, random trials, and the winners once more, in turn. About an hour on two processors.
# What FOLDER has already is kept, so that it can go on after an interruption; make_tables.py makes tables of it.
set -eu -o pipefail

simsync=$(realpath "$1")
readonly simsync out=$2
readonly steps=(--set step_time=100ms)
readonly runs=2
readonly price=0.526  # dollars an hour of a g4dn.xlarge at AWS, on demand
mkdir -p "$out"
cd "$out"

testbed_of() {
  case $1 in
    alike) echo --testbed 4 --rate 1Gbps --queues fair ;;
    unequal) echo --testbed 4 --rate 1Gbps,1Gbps,500Mbps,250Mbps ;;
    eight) echo --testbed 8 --rate 500Mbps ;;
  esac
}

# Variables are that share of their size: a step takes a fraction of a second. scale_of MODEL HOSTS
scale_of() {
  case $1-$2 in
    vgg16-alike) echo 0.02 ;;
    vgg16-unequal) echo 0.01 ;;
    bert-base-alike) echo 0.025 ;;
    bert-base-unequal) echo 0.0125 ;;
    resnet50-alike) echo 0.1 ;;
    resnet50-unequal) echo 0.05 ;;
    gnmt-eight) echo 0.01 ;;
  esac
}

# Keeps a report only when the command has succeeded. reported FILE COMMAND...
reported() {
  [ -f "$1" ] && return
  COLUMNS=1000 LC_ALL=C.UTF-8 "${@:2}" >"$1.part"
  mv "$1.part" "$1"
}

# Also keeps the seconds, unless a part was done before an interruption. timed NAME COMMAND...
timed() {
  local begins_anew=; [ -f "$1.csv" ] || begins_anew=1
  [ ! -f "$1.txt" ] || return 0
  SECONDS=0
  reported "$1.txt" "${@:2}"
  [ -z "$begins_anew" ] || echo "$SECONDS" >"$1.took"
}

# search_model MODEL HOSTS
search_model() {
  local model=$1 hosts=$2 name=$1-$2
  local bed; read -r -a bed <<<"$(testbed_of "$hosts")"
  local scale=(--set "variable_scale=$(scale_of "$model" "$hosts")")
  local search=("$simsync" search --model "$model" "${scale[@]}" "${steps[@]}" --calibration "$hosts.cal.yaml" --seed 1)
  local measured=("${search[@]}" --evaluator measure --warm-up 1 "${bed[@]}" --price-per-node-hour "$price")
  timed "$name.200" "${measured[@]}" --cluster-out "$hosts.yaml" --trials 200 --csv "$name.200.csv" --resume \
    --out "$name.200.yaml"
  # The search that ends after its first round of 20 has the same trials.
  local builders; builders=$(awk -F, 'NR > 1 && $2 == 0' "$name.200.csv" | wc -l)
  head -n $((1 + builders + 20)) "$name.200.csv" >"$name.20.csv"
  reported "$name.20.txt" "${measured[@]}" --trials 20 --csv "$name.20.csv" --resume --out "$name.20.yaml"
  timed "$name.simulator" "${search[@]}" --cluster "$hosts.yaml" --workers 4 --trials 200 \
    --out "$name.simulator.yaml"
  local builder; builder=$(sed -n 's/.*as trials ran it: --strategy \(.*\)/\1/p' "$name.200.txt")
  local run winner strategy
  for ((run = 1; run <= runs; ++run)); do
    for winner in 200 20 simulator builder; do
      strategy=("$name.$winner.yaml")
      [ "$winner" != builder ] || read -r -a strategy <<<"$builder"
      reported "$name.$winner.run$run.csv" "$simsync" measure --model "$model" "${bed[@]}" "${scale[@]}" "${steps[@]}" \
        --steps 20 --warm-up 2 --csv - --strategy "${strategy[@]}"
    done
  done
}

# random_trials MODEL HOSTS TRIALS
random_trials() {
  local bed; read -r -a bed <<<"$(testbed_of "$2")"
  reported "$1-$2.random.txt" "$simsync" search --model "$1" --set "variable_scale=$(scale_of "$1" "$2")" \
    "${steps[@]}" --calibration "$2.cal.yaml" --evaluator measure --warm-up 1 "${bed[@]}" --method random \
    --trials "$3" --seed 7 --csv "$1-$2.random.csv" --resume
}

for hosts in alike unequal eight; do
  read -r -a bed <<<"$(testbed_of "$hosts")"
  reported "$hosts.cal.txt" "$simsync" calibrate --measure "${bed[@]}" --out "$hosts.cal.yaml"
done
for model in vgg16 resnet50 bert-base; do
  for hosts in alike unequal; do
    search_model "$model" "$hosts"
  done
done
for hosts in alike unequal; do  # not bert-base: some draws take ten seconds a step
  random_trials vgg16 "$hosts" 40
  random_trials resnet50 "$hosts" 40
done
random_trials gnmt eight 20
