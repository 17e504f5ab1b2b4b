package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrUnknownKind is the error of [Document.Into] for kinds that the scheme does not
// know.
var ErrUnknownKind = errors.New("is of a kind that is not known here")

// Into is the object as a kind that the scheme knows, with no defaults applied.
//
// It is strict: fields that the kind does not have are an error, as are values of
// the wrong type; [Errors] takes it apart, one [Error] for each field. With nothing
// worse than fields that it does not have, the object is returned beside the error.
func (d *Document) Into(scheme *runtime.Scheme) (client.Object, error) {
	raw, err := json.Marshal(d.Object.Object)
	if err != nil {
		return nil, fmt.Errorf("%s:%d: write %s as JSON: %w", d.File, d.Line, d.Object.GetKind(), err)
	}
	decoder := serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme, scheme, serializer.SerializerOptions{Strict: true})
	decoded, _, err := decoder.Decode(raw, nil, nil)
	typed, isObject := decoded.(client.Object)
	switch {
	case runtime.IsNotRegisteredError(err):
		return nil, fmt.Errorf("%s:%d: %s %w", d.File, d.Line, d.Object.GetKind(), ErrUnknownKind)
	case err != nil && isObject: // which is whole but for what the kind does not have
		return typed, d.undecoded(err)
	case err != nil:
		return nil, d.undecoded(err)
	case !isObject:
		return nil, d.Mistake(d.Object.GetKind()+" is not an object that can be applied", "leave it out", "kind")
	default:
		return typed, nil
	}
}

func (d *Document) undecoded(err error) error {
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return d.mistyped(err)
	}
	var errs []error
	for _, one := range strict.Errors() {
		errs = append(errs, d.unknown(one))
	}
	return errors.Join(errs...)
}

// unknownField is how the decoder names a field that the kind does not have.
var unknownField = regexp.MustCompile(`^unknown field "(.*)"$`)

func (d *Document) unknown(err error) error {
	found := unknownField.FindStringSubmatch(err.Error())
	if found == nil {
		return d.mistyped(err)
	}
	path := pathOf(found[1])
	e := d.Mistake(fmt.Sprintf("%s has no field %s", d.Object.GetKind(), found[1]), "fix its spelling or its place, or take it out", path...)
	e.cause = err
	return e
}

// wrongType is how the decoder names a field whose value cannot be what it is.
var wrongType = regexp.MustCompile(`cannot unmarshal (\S+) into Go struct field (\w+)\.(\S+) of type (.*)$`)

func (d *Document) mistyped(err error) error {
	problem, action := strings.TrimPrefix(err.Error(), "json: "), "give it a value that the kind allows"
	var path []string
	if found := wrongType.FindStringSubmatch(problem); found != nil {
		path = pathOf(found[3])
		problem = fmt.Sprintf("%s is a %s", joined(path), found[1])
		action = "give it a value of type " + found[4]
	}
	e := d.Mistake(problem, action, path...)
	e.cause = err
	return e
}

// pathOf takes spec.containers[0].image apart.
func pathOf(field string) []string {
	return strings.FieldsFunc(field, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

// InNamespace puts the objects that name no namespace, and whose kind has one, into
// a namespace, as kubectl does with its flag.
func InNamespace(documents []Document, namespace string) {
	for i := range documents {
		object := documents[i].Object
		if object.GetNamespace() == "" && IsNamespaced(object.GroupVersionKind().GroupKind()) {
			object.SetNamespace(namespace)
		}
	}
}

// clusterScoped are the kinds of Kubernetes, and of what Spillway works with, that
// are in no namespace, by their group.
var clusterScoped = map[string][]string{
	"":                             {"ComponentStatus", "Namespace", "Node", "PersistentVolume"},
	"admissionregistration.k8s.io": nil,
	"apiextensions.k8s.io":         nil,
	"apiregistration.k8s.io":       nil,
	"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
	"flowcontrol.apiserver.k8s.io": nil,
	"networking.k8s.io":            {"IngressClass", "IPAddress", "ServiceCIDR"},
	"node.k8s.io":                  nil,
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
	"resource.k8s.io":              {"DeviceClass", "DeviceTaintRule", "ResourceSlice"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io":               {"CSIDriver", "CSINode", "StorageClass", "VolumeAttributesClass", "VolumeAttachment"},
}

// IsNamespaced is true of kinds whose objects are in a namespace, as far as can be
// known without a cluster: of kinds that are not known, most are.
func IsNamespaced(kind schema.GroupKind) bool {
	kinds, listed := clusterScoped[kind.Group]
	return !listed || kinds != nil && !slices.Contains(kinds, kind.Kind)
}
