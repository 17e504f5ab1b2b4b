#!/usr/bin/env bash
# Fails if a folder has more source files than a reader can keep in mind (ADR 19). Tests,
# doc.go and what is generated do not count.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

git ls-files '*.go' | grep -v -e '_test\.go$' -e '/doc\.go$' -e '/zz_generated' | xargs -n1 dirname | sort | uniq -c |
  awk '$1 > 15 {print $2 " has " $1 " source files, more than 15: make a package of what belongs together"; crowded = 1} END {exit crowded}' >&2
