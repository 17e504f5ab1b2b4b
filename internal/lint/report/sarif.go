package report

import (
	"cmp"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/spillway-dev/spillway/internal/source"
)

// What SARIF 2.1.0 says of itself.
const (
	sarifVersion = "2.1.0"
	sarifSchema  = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	homepage     = "https://github.com/spillway-dev/spillway"
	// sourceRoot is what files are relative to: the working directory, which in a
	// pipeline is the root of the repository.
	sourceRoot = "%SRCROOT%"
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
	Tool               sarifTool                `json:"tool"`
	OriginalURIBaseIDs map[string]sarifArtifact `json:"originalUriBaseIds,omitempty"`
	// Artifacts are those that have no URI.
	Artifacts []sarifStream `json:"artifacts,omitempty"`
	Results   []sarifResult `json:"results"`
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

// sarifArtifact is where something is: by its URI, or by its index among the artifacts.
type sarifArtifact struct {
	URI       string `json:"uri,omitempty"`
	URIBaseID string `json:"uriBaseId,omitempty"`
	Index     *int   `json:"index,omitempty"`
}

// sarifStream is an artifact that is no file.
type sarifStream struct {
	Description sarifText `json:"description"`
	Roles       []string  `json:"roles"`
}

type sarifRegion struct {
	StartLine int `json:"startLine"`
}

type sarifLogical struct {
	FullyQualifiedName string `json:"fullyQualifiedName"`
	Kind               string `json:"kind"`
}

// ToSARIF is findings in that format, with all rules, as found by a version of Spillway
// in a working directory. Files in it are relative to it, others are absolute; if it is
// not known, empty, paths are taken as they are.
func ToSARIF(findings []Finding, rules []Rule, version, directory string) SARIF {
	run := sarifRun{
		Tool:       sarifTool{Driver: sarifDriver{Name: "spillway", Version: version, InformationURI: homepage}},
		Results:    []sarifResult{},
		ColumnKind: "unicodeCodePoints",
	}
	if directory != "" {
		run.OriginalURIBaseIDs = map[string]sarifArtifact{sourceRoot: {URI: fileURI(directory + "/")}}
	}
	index := map[string]int{}
	for i, rule := range rules {
		index[rule.Code] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, rule.sarif())
	}
	for i := range findings {
		f := &findings[i]
		if f.File == source.Stdin && run.Artifacts == nil {
			run.Artifacts = []sarifStream{{sarifText{"standard input"}, []string{"standardStream"}}}
		}
		run.Results = append(run.Results, sarifResult{
			RuleID: f.Code, RuleIndex: index[f.Code], Level: f.Level, Message: sarifText{f.Message + ". " + f.Action}, Locations: []sarifLocation{f.location(directory)},
		})
	}
	return SARIF{Schema: sarifSchema, Version: sarifVersion, Runs: []sarifRun{run}}
}

func (r *Rule) sarif() sarifRule {
	return sarifRule{
		ID: r.Code, ShortDescription: sarifText{r.Title + "."}, FullDescription: sarifText{r.Why}, Help: sarifText{r.Action},
		HelpURI: cmp.Or(r.Guide, r.Page()), DefaultConfiguration: sarifConfiguration{r.Level},
	}
}

func (f *Finding) location(directory string) sarifLocation {
	l := sarifLocation{PhysicalLocation: sarifPhysical{ArtifactLocation: artifact(f.File, directory)}}
	if f.Line > 0 {
		l.PhysicalLocation.Region = &sarifRegion{f.Line}
	}
	if f.Object != "" {
		l.LogicalLocations = []sarifLogical{{f.Object, "object"}}
	}
	return l
}

// artifact is where a file is. Standard input has no URI, and is the one artifact.
func artifact(file, directory string) sarifArtifact {
	if file == source.Stdin {
		return sarifArtifact{Index: new(int)}
	}
	if directory == "" {
		return sarifArtifact{URI: (&url.URL{Path: filepath.ToSlash(file)}).String()}
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(directory, file)
	}
	relative, err := filepath.Rel(directory, file)
	if err != nil || !filepath.IsLocal(relative) {
		return sarifArtifact{URI: fileURI(file)}
	}
	return sarifArtifact{URI: (&url.URL{Path: filepath.ToSlash(relative)}).String(), URIBaseID: sourceRoot}
}

// fileURI is the URI of an absolute path. That of a directory ends in a slash.
func fileURI(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // it begins with a drive
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}
