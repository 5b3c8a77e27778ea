#!/usr/bin/env bash
# What action.yml runs; its inputs are in TIDEMARK_*.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")

program=${TIDEMARK_PROGRAM:-}
if [ -z "$program" ]; then
  "$here/../../dev" build
  program=$here/../../build/release/bin/tidemark
fi

report=$(mktemp -d "${RUNNER_TEMP:-/tmp}/tidemark-check.XXXXXX")
# Words as a shell splits them, in as many lines as one likes.
if ! xargs -r printf '%s\0' <<<"${TIDEMARK_OPTIONS:-}" >"$report/options"; then
  echo "tidemark: the quotes in the options do not match: $TIDEMARK_OPTIONS" >&2
  exit 2
fi
mapfile -d '' -t options <"$report/options"
arguments=(check "${options[@]}" --markdown "$report/report.md" --junit "$report/junit.xml"
  --json "$report/report.json")
if [ -n "${TIDEMARK_COMMAND:-}" ]; then
  arguments+=(-- bash -c "$TIDEMARK_COMMAND")
fi

status=0
"$program" "${arguments[@]}" || status=$?
case $status in
  0) result=pass ;;
  1) result=fail ;;
  4) result=undetermined ;;
  *) result=error ;;
esac
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f "$report/report.md" ]; then
  cat "$report/report.md" >>"$GITHUB_STEP_SUMMARY"
fi
if [ -n "${GITHUB_OUTPUT:-}" ]; then
  echo "result=$result" >>"$GITHUB_OUTPUT"
  if [ -f "$report/report.md" ]; then
    echo "markdown=$report/report.md" >>"$GITHUB_OUTPUT"
  fi
fi
if [ "$result" = undetermined ] && [ "${TIDEMARK_UNDETERMINED:-fail}" = pass ]; then
  status=0
fi
exit "$status"
