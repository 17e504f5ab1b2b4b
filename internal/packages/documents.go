package packages

import (
	"maps"
	"slices"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/source"
)

// Documents are the objects of the package as manifests, whose fields are found in the files
// that they come from.
func (p *Package) Documents() ([]source.Document, error) {
	version, err := p.VersionObject()
	if err != nil {
		return nil, err
	}
	operator, err := kube.Manifest(p.OperatorObject())
	if err != nil {
		return nil, err
	}
	versioned, err := kube.Manifest(version)
	if err != nil {
		return nil, err
	}
	return []source.Document{
		source.Compose(operator, p.part(operatorFile, []string{"spec"}), p.part(operatorFile, []string{"metadata", fieldName}, fieldName)),
		source.Compose(versioned, p.parts()...),
	}, nil
}

// parts are the files of the OperatorVersion.
func (p *Package) parts() []source.Part {
	parts := []source.Part{
		p.part(operatorFile, []string{"spec"}),
		p.part(operatorFile, []string{"spec", "version"}, "operatorVersion"),
		p.part(operatorFile, []string{"metadata", fieldName}, fieldName),
		p.part(paramsFile, []string{"spec", "parameters"}, "parameters"),
	}
	for _, name := range slices.Sorted(maps.Keys(p.Templates)) {
		template := p.part(templatesDir+name, []string{"spec", "templates", name})
		template.IsText = true
		parts = append(parts, template)
	}
	return parts
}

func (p *Package) part(file string, path []string, at ...string) source.Part {
	return source.Part{Path: path, At: at, File: fileIn(p.From, file), Text: p.files[file]}
}
