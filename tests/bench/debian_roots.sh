#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes root folders of other releases of Debian, with their Python, numpy and torch, for the bench of
# interpreters: debian_roots.sh SUITE... prints the folder that has them, one folder for each suite.
# That is $TIDEMARK_ROOTS, or one in the cache. Those that are there already are taken as they are.
# Needs root, debootstrap, 3 GB and some minutes for each.
set -euo pipefail

readonly roots=${TIDEMARK_ROOTS:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/tidemark/roots}

say() { printf 'roots: %s\n' "$*" >&2; }

# The mirror that apt uses on this machine, which has to be one of Debian.
mirror_of_apt() {
  local codename
  # shellcheck disable=SC1091
  codename=$(. /etc/os-release && [ "${ID:-}" = debian ] && echo "${VERSION_CODENAME:-}") || true
  # shellcheck disable=SC2016 # apt's own variables
  apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
    sed -n "s/^${codename:-none} //p" | head -n 1
}

# Runs a command below a root folder, with /proc, which the installation of some packages reads.
below() { # root command...
  # shellcheck disable=SC2016 # of the inner shell
  unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$@"
}

make_root() { # suite mirror
  local new=$roots/.$1.new version
  local install=(apt-get install -q -y --no-install-recommends)
  rm -rf --one-file-system "$new"
  debootstrap --variant=minbase --include=python3,python3-numpy,ca-certificates "$1" "$new" "$2" &&
    below "$new" "${install[@]}" python3-torch &&
    version=$(below "$new" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])') || return
  below "$new" "${install[@]}" "libpython$version-testsuite" ||
    say "$1 has no tests of Python $version: they are left out"
  below "$new" apt-get clean
  mv -T "$new" "$roots/$1"
}

missing=()
for suite in "$@"; do
  [ -e "$roots/$suite/usr/bin/python3" ] || missing+=("$suite")
done
if [ "${#missing[@]}" -gt 0 ] && [ "$(id -u)" -ne 0 ]; then
  say "only root can make those of ${missing[*]}: they are left out"
elif [ "${#missing[@]}" -gt 0 ]; then
  mirror=$(mirror_of_apt)
  [ -n "$mirror" ] || say "apt knows no Debian archive here: ${missing[*]} are left out"
  mkdir -p "$roots"
  for suite in ${mirror:+"${missing[@]}"}; do
    log=$roots/$suite.log
    say "making that of $suite, see $log"
    if ! DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 make_root "$suite" "$mirror" >"$log" 2>&1; then
      say "that of $suite cannot be made: $(tail -n 1 "$log")"
      rm -rf --one-file-system "$roots/.$suite.new"
    fi
  done
fi
echo "$roots"
