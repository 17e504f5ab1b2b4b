#!/usr/bin/env bash
# Copies what git knows of this repository to an empty folder, as one commit: what a release is
# made from. It is the same commit wherever the folder is.
set -euo pipefail
cd "$(git -C "$(dirname "${BASH_SOURCE[0]}")" rev-parse --show-toplevel)"
git ls-files -co --exclude-standard -z | while IFS= read -r -d '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done | tar -c --null -T - | tar -x -C "$1"
cd "$1"
git init -q
git add -A
GIT_AUTHOR_DATE=2026-11-22T10:00:00Z GIT_COMMITTER_DATE=2026-11-22T10:00:00Z git -c user.name=a -c user.email=a@example.test commit -q -m release
