#!/usr/bin/env bash
# usage: tests/demo.sh BUILD_DIR
# Starts a process tree that looks like a training job (wrapper, trainer, compile workers, DataLoader
# workers; see tests/programs/training_tree.cpp), lets tidemark find it and watches it for a few seconds.
set -euo pipefail
build=$1
tidemark=$build/bin/tidemark

work=$(mktemp -d)
job=
cleanup() {
  if [ -n "$job" ]; then
    kill "$job" 2>/dev/null || true
    wait "$job" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap cleanup EXIT

say() { printf '\n$ %s\n' "$*"; }

echo 'Starting a job: uv -> python3 train.py -> compile workers and DataLoader workers; the trainer'
echo 'grows by 25 MB/s, 5 steps a second.'
"$build/tests/programs/training_tree" --wrapper uv --workers 8 --dataloaders 4 --trainer-mb 200 \
  --grow-mb-per-s 25 --steps-per-s 5 --seconds 60 >"$work/job.log" &
job=$!
for _ in $(seq 100); do
  [ -s "$work/job.log" ] && break
  sleep 0.1
done

say "tidemark find"
"$tidemark" find

say "tidemark monitor --pid $job --duration 6s -o run.tidemark --step-regex 'Step +(\\d+)' --log-file job.log"
"$tidemark" monitor --pid "$job" --duration 6s -o "$work/run.tidemark" \
  --step-regex 'Step +(\d+)' --log-file "$work/job.log"

say "tidemark track run.tidemark --warmup 8steps"
"$tidemark" track "$work/run.tidemark" --warmup 8steps || true # its exit code is the verdict

say "tidemark export run.tidemark --format csv | head -n 4"
"$tidemark" export "$work/run.tidemark" --format csv >"$work/run.csv"
head -n 4 "$work/run.csv"
