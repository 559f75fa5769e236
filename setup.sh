#!/bin/bash
# ./setup.sh        installs what is missing (as root), builds simsync and runs a first prediction
# ./setup.sh test   the same, then builds and runs all tests
set -eu -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly build=build/release
readonly log=build/setup.log
jobs=$(nproc 2>/dev/null || echo 1)

say() { printf '== %s\n' "$*"; }

# Runs a command with its output in the log; shows the end of it when the command fails.
quietly() {
  "$@" >>"$log" 2>&1 && return
  tail -n 40 "$log" >&2
  printf 'error: failed: %s (all of it: %s)\n' "$*" "$log" >&2
  exit 1
}

# missing_packages LIST...
missing_packages() {
  local package _
  cat "$@" | while read -r package _; do
    case $package in '' | '#'*) continue ;; esac
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s ' "$package"
  done
}

# install_packages LIST...
install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system: expecting everything in $* to be there"
    return
  fi
  local packages
  packages=$(missing_packages "$@")
  [ -n "$packages" ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    printf 'error: packages are missing; install them as root, then run this again:\n' >&2
    printf 'apt-get install -y --no-install-recommends %s\n' "${packages% }" >&2
    exit 4
  fi
  say "installing ${packages% }"
  export DEBIAN_FRONTEND=noninteractive
  quietly apt-get update
  # shellcheck disable=SC2086  # one word per package
  quietly apt-get install -y --no-install-recommends $packages
}

# On a terminal ninja keeps one line up to date; else the log has it.
build() {
  say "building $* in $build with $jobs jobs (minutes the first time)"
  if [ -t 1 ]; then
    cmake --build "$build" -j "$jobs" --target "$@"
  else
    quietly cmake --build "$build" -j "$jobs" --target "$@"
  fi
}

# The step of one GPU is measured: 32 images at the 74.9 a second of autodist-vgg16-allreduce-1 in
# validate/reference/autodist_g4dn.csv take 427 ms. The data sheet of the T4 alone would give 735 ms.
first_prediction() {
  local sweep=(sweep --model vgg16 --cluster g4dn.12xlarge --workers 32 --batch 32 --strategy all --set step_time=427ms
    --table --jobs "$jobs")
  printf '\nVGG16 on 8 nodes with 4 T4 GPUs each (g4dn.12xlarge), 32 samples per GPU and step:\n'
  printf 'The output of: %s/cli/simsync %s\n\n' "$build" "${sweep[*]}"
  "$build/cli/simsync" "${sweep[@]}"
}

case ${1-} in
  '' | test) ;;
  *)
    printf 'usage: ./setup.sh [test]\n' >&2
    exit 2
    ;;
esac
if ! { mkdir -p build && : >"$log"; } 2>/dev/null; then
  printf 'error: cannot write to %s: build a clone of your own\n' "$PWD/build" >&2
  exit 4
fi
if [ "${1-}" = test ]; then
  install_packages cmake/packages.txt cmake/test-packages.txt
else
  install_packages cmake/packages.txt
fi
say "configuring"
quietly cmake --preset release
if [ "${1-}" = test ]; then
  build all
  ctest --test-dir "$build" --output-on-failure -j "$jobs"
else
  build simsync
  first_prediction
fi
