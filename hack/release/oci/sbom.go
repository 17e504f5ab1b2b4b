package oci

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// SBOM lists what is linked into a program, by what the program says about itself.
func (s Spec) SBOM(p Program) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(p.Content))
	if err != nil {
		return nil, fmt.Errorf("read what the program for %s consists of: %w", p.Platform, err)
	}
	sum := sha256.Sum256(p.Content)
	main := cdx.Component{
		BOMRef: "spillway", Type: cdx.ComponentTypeApplication, Name: info.Main.Path, Version: s.Source.Version,
		PackageURL: purl(info.Main.Path, s.Source.Version), Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		Licenses:   &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		Properties: &[]cdx.Property{{Name: "platform", Value: p.Platform.String()}, {Name: "commit", Value: s.Source.Commit}},
	}
	std := strings.TrimPrefix(info.GoVersion, "go")
	components := []cdx.Component{{BOMRef: purl("std", std), Type: cdx.ComponentTypeLibrary, Name: "std", Version: std, PackageURL: purl("std", std)}}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		components = append(components, cdx.Component{
			BOMRef: purl(dep.Path, dep.Version), Type: cdx.ComponentTypeLibrary, Name: dep.Path, Version: dep.Version,
			PackageURL: purl(dep.Path, dep.Version), Hashes: moduleHash(dep.Sum),
		})
	}
	refs := make([]string, 0, len(components))
	for i := range components {
		refs = append(refs, components[i].BOMRef)
	}
	bom := cdx.NewBOM()
	bom.SerialNumber = serial(sum)
	bom.Metadata = &cdx.Metadata{Timestamp: s.Source.Date.UTC().Format(time.RFC3339), Component: &main}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	var b bytes.Buffer
	if err := cdx.NewBOMEncoder(&b, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return nil, fmt.Errorf("write the list of what is linked in: %w", err)
	}
	return b.Bytes(), nil
}

func purl(path, version string) string { return "pkg:golang/" + path + "@" + version }

// moduleHash is the hash of a module's files by which Go knows it, in the form of the list.
func moduleHash(sum string) *[]cdx.Hash {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:"))
	if err != nil || len(raw) != sha256.Size {
		return nil
	}
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(raw)}}
}

// serial is a UUID that follows from the program, as a random one would differ each time.
func serial(sum [sha256.Size]byte) string {
	id := sum[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // version 8: made by the application
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[0:4], id[4:6], id[6:8], id[8:10], id[10:16])
}
