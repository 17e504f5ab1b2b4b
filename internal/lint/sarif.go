package lint

import (
	"net/url"
	"path/filepath"
)

// What SARIF 2.1.0 says of itself.
const (
	sarifVersion = "2.1.0"
	sarifSchema  = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	homepage     = "https://github.com/spillway-dev/spillway"
	// Guide is the page that documents the rules.
	Guide = homepage + "/blob/main/docs/lint.md"
)

// SARIF is the format in which code scanners report: version 2.1.0, as far as it is
// needed here.
type SARIF struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool    sarifTool     `json:"tool"`
	Results []sarifResult `json:"results"`
	// ColumnKind is how columns would be counted; there are none.
	ColumnKind string `json:"columnKind"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name           string      `json:"name"`
	Version        string      `json:"version,omitempty"`
	InformationURI string      `json:"informationUri"`
	Rules          []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID                   string             `json:"id"`
	ShortDescription     sarifText          `json:"shortDescription"`
	FullDescription      sarifText          `json:"fullDescription"`
	Help                 sarifText          `json:"help"`
	HelpURI              string             `json:"helpUri"`
	DefaultConfiguration sarifConfiguration `json:"defaultConfiguration"`
}

type sarifConfiguration struct {
	Level Level `json:"level"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifResult struct {
	RuleID    string          `json:"ruleId"`
	RuleIndex int             `json:"ruleIndex"`
	Level     Level           `json:"level"`
	Message   sarifText       `json:"message"`
	Locations []sarifLocation `json:"locations"`
}

type sarifLocation struct {
	PhysicalLocation sarifPhysical  `json:"physicalLocation"`
	LogicalLocations []sarifLogical `json:"logicalLocations,omitempty"`
}

type sarifPhysical struct {
	ArtifactLocation sarifArtifact `json:"artifactLocation"`
	Region           *sarifRegion  `json:"region,omitempty"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifRegion struct {
	StartLine int `json:"startLine"`
}

type sarifLogical struct {
	FullyQualifiedName string `json:"fullyQualifiedName"`
	Kind               string `json:"kind"`
}

// ToSARIF is findings in that format, with all rules, as found by a version of
// Spillway.
func ToSARIF(findings []Finding, version string) SARIF {
	run := sarifRun{
		Tool:       sarifTool{Driver: sarifDriver{Name: "spillway", Version: version, InformationURI: homepage}},
		Results:    []sarifResult{},
		ColumnKind: "unicodeCodePoints",
	}
	index := map[string]int{}
	for i, rule := range rules() {
		index[rule.Code] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			ID: rule.Code, ShortDescription: sarifText{rule.Title + "."}, FullDescription: sarifText{rule.Why}, Help: sarifText{rule.Mend},
			HelpURI: Guide + "#" + anchor(rule.Code), DefaultConfiguration: sarifConfiguration{rule.Level},
		})
	}
	for i := range findings {
		f := &findings[i]
		run.Results = append(run.Results, sarifResult{
			RuleID: f.Code, RuleIndex: index[f.Code], Level: f.Level, Message: sarifText{f.Message + ". " + f.Mend}, Locations: []sarifLocation{f.location()},
		})
	}
	return SARIF{Schema: sarifSchema, Version: sarifVersion, Runs: []sarifRun{run}}
}

func (f *Finding) location() sarifLocation {
	l := sarifLocation{PhysicalLocation: sarifPhysical{ArtifactLocation: sarifArtifact{uri(f.File)}}}
	if f.Line > 0 {
		l.PhysicalLocation.Region = &sarifRegion{f.Line}
	}
	if f.Object != "" {
		l.LogicalLocations = []sarifLogical{{f.Object, "object"}}
	}
	return l
}

// uri is a path as a reference, relative if the path is.
func uri(file string) string {
	u := url.URL{Path: filepath.ToSlash(file)}
	return u.String()
}
