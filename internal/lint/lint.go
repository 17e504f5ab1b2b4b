package lint

import (
	"slices"

	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/lint/rules"
	"github.com/spillway-dev/spillway/internal/source"
)

// Lint finds what is to fix in documents. Unread is the error with which they were
// read, nil if there was none; what it says is found as well.
func Lint(documents []source.Document, unread error, o manifest.Options) ([]report.Finding, error) {
	m := manifest.New(documents, unread, o)
	var err error
	if m.Schemas, err = manifest.LoadSchemas(); err != nil {
		return nil, err
	}
	findings := rules.Check(m)
	slices.SortStableFunc(findings, report.CompareFindings)
	return slices.Compact(findings), nil
}
