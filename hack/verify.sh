#!/usr/bin/env bash
# Fails if a generated file is not what its sources generate, if a module is
# not tidy, or if code is not formatted. It changes nothing in the tree.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
complain() { echo "verify: $1" >&2; failed=1; }

before=$(mktemp -d)
folders="api internal/reasons docs/reasons.md docs/lint.md docs/man docs/commands.md docs/exit-codes.md docs/flags.md docs/kinds.md docs/metrics.md docs/annotations.md docs/reloader.md docs/counterparts.md docs/values.md docs/schemas monitoring/dashboards charts/spillway/generated"
for folder in $folders; do
  mkdir -p "$before/$(dirname "$folder")" && cp -R "$folder" "$before/$folder"
done
restore() { # also if generating has failed halfway
  for folder in $folders; do
    diff -rq "$before/$folder" "$folder" >/dev/null || { rm -rf "$folder" && cp -R "$before/$folder" "$folder"; }
  done
  rm -rf "$before"
}
trap restore EXIT
make --no-print-directory generate
for folder in $folders; do
  diff -ru "$before/$folder" "$folder" || complain "$folder is not up to date; run make generate"
done

unformatted=$(gofmt -l api cmd hack internal rollout examples bench test)
[ -z "$unformatted" ] || complain "not formatted: $unformatted; run gofmt -w"

go mod tidy -diff || complain "go.mod is not tidy; run go mod tidy"
for module in k8s flux release; do
  (cd "hack/$module" && go mod tidy -diff) || complain "hack/$module/go.mod is not tidy; run go mod tidy there"
done
(cd test/monitoring && go mod tidy -diff) || complain "test/monitoring/go.mod is not tidy; run go mod tidy there"

exit "$failed"
