#!/usr/bin/env bash
# Builds FTXUI once, for distributions without a package of version 5 or later, and installs it
# where cmake/TidemarkDependencies.cmake looks. Does nothing when it is there already.
#
# The source is Debian's own source package, from the mirror that apt uses on this machine. apt
# checks the signature of the release; should its keys be missing here, the pinned hashes below
# stand in for it. They are checked in any case.
set -euo pipefail

readonly version=5.0.0
readonly debian_version=5.0.0-2
readonly release=trixie
readonly orig=ftxui_$version.orig.tar.gz
readonly orig_sha256=a2991cb222c944aee14397965d9f6b050245da849d8c5da7c72d112de2786b5b
readonly prefix=${XDG_CACHE_HOME:-${HOME:?}/.cache}/tidemark/ftxui-$version

say() { printf 'ftxui: %s\n' "$*" >&2; }
die() {
  say "$*"
  exit 1
}

[ -e "$prefix/complete" ] && exit 0

# The archive that this machine's Debian comes from; others do not carry the source package.
# shellcheck disable=SC1091
codename=$(. /etc/os-release && [ "${ID:-}" = debian ] && echo "${VERSION_CODENAME:-}") || true
# shellcheck disable=SC2016 # apt's own variables
mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
  sed -n "s/^${codename:-none} //p" | head -n 1)
[ -n "$mirror" ] || die "apt knows no Debian archive here to take the source package from"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{state/lists/partial,cache/archives/partial,source}
chmod 755 "$work" # apt downloads as its own user

cat >"$work/apt.conf" <<TEXT
Dir::State "$work/state";
Dir::State::status "/var/lib/dpkg/status";
Dir::Cache "$work/cache";
Dir::Etc::SourceList "$work/sources.list";
Dir::Etc::SourceParts "-";
APT::Sandbox::User "$(id -un)";
TEXT
export APT_CONFIG=$work/apt.conf

say "fetching its source package"
echo "deb-src $mirror $release main" >"$work/sources.list"
if ! apt-get update -q >"$work/update.log" 2>&1 || grep -q '^[WE]:.*signature' "$work/update.log"; then
  if ! grep -q -e NO_PUBKEY -e signature "$work/update.log"; then
    cat "$work/update.log" >&2
    die "the package lists of $release cannot be read"
  fi
  say "the keys of $release are not on this machine; the pinned hash decides"
  echo "deb-src [trusted=yes] $mirror $release main" >"$work/sources.list"
  apt-get update -q >"$work/update.log" 2>&1 || {
    cat "$work/update.log" >&2
    die "the package lists of $release cannot be read"
  }
fi
cd "$work/source"
apt-get source -q --download-only "ftxui=$debian_version" >"$work/source.log" 2>&1 || {
  cat "$work/update.log" "$work/source.log" >&2
  die "its source package cannot be fetched"
}
echo "$orig_sha256  $orig" | sha256sum --check --status || die "$orig is not what we expect"
mkdir tree
tar -xzf "$orig" -C tree --strip-components=1

say "building it, which takes about a minute"
{
  cmake -S tree -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
    -DFTXUI_BUILD_DOCS=OFF -DFTXUI_BUILD_EXAMPLES=OFF -DFTXUI_BUILD_TESTS=OFF \
    -DFTXUI_ENABLE_INSTALL=ON -DCMAKE_INSTALL_PREFIX="$prefix.new" -DCMAKE_INSTALL_LIBDIR=lib &&
    cmake --build "$work/build" && rm -rf "$prefix.new" && cmake --install "$work/build"
} >"$work/build.log" 2>&1 || {
  tail -n 40 "$work/build.log" >&2
  die "it does not build here"
}
touch "$prefix.new/complete"
rm -rf "$prefix"
mv -T "$prefix.new" "$prefix"
say "installed in $prefix"
