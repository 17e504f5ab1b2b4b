package oci

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// The types of what SLSA says about a build, https://slsa.dev/spec/v1.0/provenance.
const (
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://slsa.dev/provenance/v1"
	buildType     = "https://github.com/spillway-dev/spillway/hack/release@v1"
	builderID     = "https://github.com/spillway-dev/spillway/hack/release"
	repository    = "git+https://github.com/spillway-dev/spillway"
)

type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     provenance `json:"predicate"`
}

type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

type provenance struct {
	BuildDefinition definition `json:"buildDefinition"`
	RunDetails      details    `json:"runDetails"`
}

type definition struct {
	BuildType            string         `json:"buildType"`
	ExternalParameters   map[string]any `json:"externalParameters"`
	InternalParameters   map[string]any `json:"internalParameters,omitempty"`
	ResolvedDependencies []resource     `json:"resolvedDependencies"`
}

type details struct {
	Builder  map[string]string `json:"builder"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// Provenance says from which commit, by which Go and with which settings the image was
// made. It has no time of its own: who builds the commit again gets the same image and the
// same provenance.
func (s Spec) Provenance(subject v1.Hash) ([]byte, error) {
	settings, goVersion := map[string]any{}, ""
	var platforms []string
	for _, p := range s.Programs {
		info, err := buildinfo.Read(bytes.NewReader(p.Content))
		if err != nil {
			return nil, fmt.Errorf("read how the program for %s was built: %w", p.Platform, err)
		}
		of := map[string]string{}
		for _, setting := range info.Settings {
			of[setting.Key] = setting.Value
		}
		settings[p.Platform.String()], goVersion = of, info.GoVersion
		platforms = append(platforms, p.Platform.String())
	}
	raw, err := json.MarshalIndent(statement{
		Type: statementType, PredicateType: predicateType,
		Subject: []resource{{Name: s.Repository, Digest: map[string]string{subject.Algorithm: subject.Hex}}},
		Predicate: provenance{
			BuildDefinition: definition{
				BuildType:          buildType,
				ExternalParameters: map[string]any{"version": s.Source.Version, "tag": s.Tag, "platforms": platforms, "fips": s.FIPS},
				InternalParameters: map[string]any{"settings": settings},
				ResolvedDependencies: []resource{
					{URI: repository + "@refs/tags/" + s.Source.Version, Digest: map[string]string{"gitCommit": s.Source.Commit}},
					{Name: "go", URI: "https://go.dev/dl/#" + goVersion},
				},
			},
			RunDetails: details{Builder: map[string]string{"id": builderID}},
		},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the provenance: %w", err)
	}
	return raw, nil
}
