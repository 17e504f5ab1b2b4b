package modern

import (
	"slices"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/internal/plans/object"
)

// Change is one that a template needs.
type Change struct {
	// Line of the template, from 1.
	Line int
	// Object is the object that it is about, by kind.
	Object string
	// What is done, or what a person must do.
	What string
	// Manual is true of what is not changed here.
	Manual bool
}

// Template returns a template as Kubernetes 1.MINOR and later versions take it, and what
// was changed or must be changed, by line.
func Template(text string, minor int) (string, []Change) {
	p := newPage(text)
	for _, part := range p.documents() {
		for _, at := range objectsIn(part.root) {
			p.modernize(&at, part.offset, minor)
		}
	}
	slices.SortStableFunc(p.changes, func(a, b Change) int { return a.Line - b.Line })
	return p.text(), p.changes
}

// place is an object in a document.
type place struct {
	node          *yamlv3.Node
	version, kind *yamlv3.Node
}

func (p *place) gvk() schema.GroupVersionKind {
	gv, err := schema.ParseGroupVersion(p.version.Value)
	if err != nil {
		return schema.GroupVersionKind{}
	}
	return gv.WithKind(p.kind.Value)
}

// objectsIn are the maps with apiVersion and kind: objects, those of lists, and references.
func objectsIn(node *yamlv3.Node) []place {
	var found []place
	if node.Kind == yamlv3.MappingNode {
		at := place{node: node, version: field(node, "apiVersion"), kind: field(node, "kind")}
		if at.version != nil && at.kind != nil {
			found = append(found, at)
		}
	}
	for _, child := range node.Content {
		found = append(found, objectsIn(child)...)
	}
	return found
}

// modernize changes one object.
func (p *page) modernize(at *place, offset, minor int) {
	gvk := at.gvk()
	to, isRetired := object.Successor(gvk)
	if !isRetired || object.IsServedIn(gvk, minor) {
		return
	}
	o := &edit{page: p, offset: offset, place: at}
	if to.Empty() {
		o.manual(at.version, object.RetiredAdvice(gvk))
		p.apply(o)
		return
	}
	o.replace(at.version, to.String(), object.RetiredAdvice(gvk))
	if convert := converters[gvk.GroupKind()]; convert != nil {
		convert(o)
	}
	if gvk.Group == "discovery.k8s.io" || gvk.Group == "events.k8s.io" {
		o.manual(at.version, object.RetiredAdvice(gvk)+", which has other fields")
	}
	p.apply(o)
}

// converters change the fields that differ, by kind.
var converters = map[schema.GroupKind]func(*edit){
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:               (*edit).definition,
	{Group: "apps", Kind: "Deployment"}:                                             (*edit).selector,
	{Group: "apps", Kind: "StatefulSet"}:                                            (*edit).selector,
	{Group: "apps", Kind: "DaemonSet"}:                                              (*edit).selector,
	{Group: "apps", Kind: "ReplicaSet"}:                                             (*edit).selector,
	{Group: "extensions", Kind: "Deployment"}:                                       (*edit).selector,
	{Group: "extensions", Kind: "DaemonSet"}:                                        (*edit).selector,
	{Group: "extensions", Kind: "ReplicaSet"}:                                       (*edit).selector,
	{Group: "extensions", Kind: "Ingress"}:                                          (*edit).ingress,
	{Group: "networking.k8s.io", Kind: "Ingress"}:                                   (*edit).ingress,
	{Group: "policy", Kind: "PodDisruptionBudget"}:                                  (*edit).disruptions,
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:                         (*edit).metrics,
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}:               (*edit).signer,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   (*edit).webhooks,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: (*edit).webhooks,
}
