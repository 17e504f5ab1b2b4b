package manifest

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// anywhere is the namespace of what is named without one, by something that is in none.
const anywhere = ""

// mentions are the ways in which manifests name ConfigMaps and Secrets, the Pods that
// use them apart. Of a kind that is known only those fields count that refer to config:
// that a container or a label has the name of a ConfigMap says nothing.
type mentions struct {
	// refs are what fields refer to.
	refs map[content.Object]bool
	// words are texts that may be names, by namespace: in arguments and annotations.
	words vocabularies
	// foreign are those in kinds that are not known here, where any text may be a name.
	foreign vocabularies
	// made are those in kinds by which Secrets or ConfigMaps are made.
	made vocabularies
}

// vocabularies are words by namespace.
type vocabularies map[string]map[string]bool

func newMentions() mentions {
	return mentions{refs: map[content.Object]bool{}, words: vocabularies{}, foreign: vocabularies{}, made: vocabularies{}}
}

// read adds what an object names.
func (n *mentions) read(o *Object, isKnown bool) {
	switch {
	case o.Is("apiextensions.k8s.io", "CustomResourceDefinition"): // whose words are those of a schema
	case isKnown && o.Object.GroupVersionKind().Group != v1beta1.GroupVersion.Group: // where templates are text
		n.readKnown(o)
	default:
		n.readForeign(o)
	}
	n.readAnnotations(o.Namespace(), o.Object.GetAnnotations(), o.Is("networking.k8s.io", "Ingress"))
}

func (n *mentions) readKnown(o *Object) {
	n.refer(o.Namespace(), "", o.Object.Object)
	n.readPermissions(o)
	template, _ := o.Pods()
	if template == nil {
		return
	}
	n.readAnnotations(o.Namespace(), template.Annotations, false)
	for _, containers := range [][]corev1.Container{template.Spec.Containers, template.Spec.InitContainers} {
		for i := range containers {
			n.readContainer(o.Namespace(), &containers[i])
		}
	}
}

// The ends of the names of fields that refer to config, in small letters.
var (
	toConfigMap = regexp.MustCompile(`configmap(ref|keyref)?$`)
	toSecret    = regexp.MustCompile(`secret(s|ref|keyref)?$`)
	secretName  = regexp.MustCompile(`secret-?name$`)
)

// refer adds what the fields of a value refer to. The items of a list belong to the
// same field.
func (n *mentions) refer(namespace, field string, value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			n.refer(namespace, field, item)
		}
	case map[string]any:
		if kind := referredKind(strings.ToLower(field), v["kind"]); kind != "" {
			n.referTo(namespace, kind, v)
		}
		for key, inner := range v {
			if name, ok := inner.(string); ok && secretName.MatchString(strings.ToLower(key)) {
				n.refs[content.Object{Kind: content.Secret, Namespace: textOr(v["secretNamespace"], namespace), Name: name}] = true
			}
			n.refer(namespace, key, inner)
		}
	}
}

// referredKind is the kind that a field refers to, if it is one of config.
func referredKind(field string, said any) content.Kind {
	switch {
	case said == string(content.ConfigMap) || said == nil && toConfigMap.MatchString(field):
		return content.ConfigMap
	case said == string(content.Secret) || said == nil && toSecret.MatchString(field):
		return content.Secret
	default:
		return ""
	}
}

func (n *mentions) referTo(namespace string, kind content.Kind, ref map[string]any) {
	if name := textOr(ref["name"], ""); name != "" {
		n.refs[content.Object{Kind: kind, Namespace: textOr(ref["namespace"], namespace), Name: name}] = true
	}
}

func textOr(value any, otherwise string) string {
	if text, ok := value.(string); ok && text != "" {
		return text
	}
	return otherwise
}

// readPermissions adds the config that a Role permits to read by its name: its
// subjects use it.
func (n *mentions) readPermissions(o *Object) {
	var rules []rbacv1.PolicyRule
	switch role := o.Typed.(type) {
	case *rbacv1.Role:
		rules = role.Rules
	case *rbacv1.ClusterRole:
		rules = role.Rules
	}
	for i := range rules {
		for kind, resource := range resources {
			for _, name := range rules[i].ResourceNames {
				if slices.Contains(rules[i].Resources, resource) {
					n.refs[content.Object{Kind: kind, Namespace: o.Namespace(), Name: name}] = true
				}
			}
		}
	}
}

// resources are how permissions call the kinds of config.
var resources = map[content.Kind]string{content.ConfigMap: "configmaps", content.Secret: "secrets"}

// readContainer adds the words of what a program is started with: all of its arguments, and
// those of its environment that are about config.
func (n *mentions) readContainer(namespace string, c *corev1.Container) {
	for _, text := range slices.Concat(c.Command[min(1, len(c.Command)):], c.Args) {
		n.words.addAll(namespace, text)
	}
	for i := range c.Env {
		if aboutConfig.MatchString(strings.ToLower(c.Env[i].Name)) {
			n.words.addAll(namespace, c.Env[i].Value)
		}
	}
}

// aboutConfig is what the names of annotations and of variables have in common whose
// values name config.
var aboutConfig = regexp.MustCompile(`secret|config|cert|tls|auth|reflect|replicate`)

// readAnnotations adds what annotations about config name, or all of them: those of an
// Ingress are all for controllers.
func (n *mentions) readAnnotations(namespace string, annotations map[string]string, all bool) {
	for key, value := range annotations {
		_, native := Entries()[key]
		extra := slices.Contains(vocabulary.ExtraConfigMaps.Names(), key) || slices.Contains(vocabulary.ExtraSecrets.Names(), key)
		if key == corev1.LastAppliedConfigAnnotation || native && !extra {
			continue
		}
		if all || aboutConfig.MatchString(strings.ToLower(key)) {
			n.words.addAll(namespace, value)
		}
	}
}

var (
	// variable is a reference to a variable, and what joins it to what follows.
	variable = regexp.MustCompile(`\$(\([^)]*\)|\{[^}]*\}|[A-Z_]+)/?`)
	// word is one, or several with a namespace before them.
	word = regexp.MustCompile(`[A-Za-z0-9./_-]+`)
)

// makers are the kinds that are not known here and by which Secrets or ConfigMaps are
// made: Certificate, ExternalSecret, SealedSecret, Bundle.
var makers = regexp.MustCompile(`Secret|Certificate|ConfigMap|Bundle`)

// readForeign adds all that may be a name in an object of a kind that is not known: in
// its own namespace, in those that it names, and anywhere if it may be in none. It may
// also find config by its own name and kind, "alertmanager-main"; and what it makes is
// mostly called like itself.
func (n *mentions) readForeign(o *Object) {
	namespaces := []string{anywhere}
	if o.placed {
		namespaces = append(namespacesIn(o.Object.Object, nil), o.Namespace())
	}
	kind := strings.ToLower(o.Kind())
	for _, namespace := range namespaces {
		n.foreign.readObject(namespace, o)
		n.foreign.add(namespace, kind+"-"+o.Name())
		n.foreign.add(namespace, o.Name()+"-"+kind)
		if makers.MatchString(o.Kind()) {
			n.made.readObject(namespace, o)
			n.made.add(namespace, o.Name())
		}
	}
}

// Name is true if something names a ConfigMap or a Secret.
func (n *mentions) Name(ref content.Object) bool {
	unplaced := ref
	unplaced.Namespace = anywhere
	return n.refs[ref] || n.refs[unplaced] || n.words.has(ref.Namespace, ref.Name) || n.foreign.has(ref.Namespace, ref.Name)
}

func (v vocabularies) has(namespace, word string) bool {
	return v[namespace][word] || v[anywhere][word]
}

// namespacesIn are those that fields of a value name.
func namespacesIn(value any, found []string) []string {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			found = namespacesIn(item, found)
		}
	case map[string]any:
		for key, inner := range v {
			if name, ok := inner.(string); ok && strings.HasSuffix(strings.ToLower(key), "namespace") {
				found = append(found, name)
			}
			found = namespacesIn(inner, found)
		}
	}
	return found
}

// nameless are fields of kinds that are not known whose texts are never names of
// config: labels, keys, and how ports are called.
var nameless = regexp.MustCompile(`(?i)(labels?|selector|port|key|matchexpressions)$`)

func (v vocabularies) readObject(namespace string, o *Object) {
	for field, value := range o.Object.Object {
		if field != "metadata" && field != "kind" && field != "apiVersion" {
			v.readText(namespace, field, value)
		}
	}
}

func (v vocabularies) readText(namespace, field string, value any) {
	if nameless.MatchString(field) {
		return
	}
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			v.readText(namespace, field, item)
		}
	case map[string]any:
		for key, inner := range value {
			v.readText(namespace, key, inner)
		}
	case string:
		v.readString(namespace, field, value)
	}
}

// readString takes a text of several lines for YAML, such as the values of a chart, and
// if it is none for a script. A sentence names nothing.
func (v vocabularies) readString(namespace, field, text string) {
	inner := map[string]any{}
	switch {
	case strings.Contains(text, "\n") && yaml.Unmarshal([]byte(text), &inner) == nil:
		v.readText(namespace, "", inner)
	case strings.Contains(text, "\n") || !strings.Contains(text, " ") || field == "args" || field == "command":
		v.addAll(namespace, text)
	}
}

// addAll adds the words in a text, and the names in what reads as NAMESPACE/NAME. What
// begins with a slash is the path of a file, and names nothing.
func (v vocabularies) addAll(namespace, text string) {
	for _, found := range word.FindAllString(variable.ReplaceAllString(text, " "), -1) {
		if strings.HasPrefix(found, "/") {
			continue
		}
		parts := strings.Split(strings.Trim(found, "-./_"), "/")
		for i, part := range parts {
			v.add(namespace, part)
			if i > 0 {
				v.add(parts[i-1], part)
			}
		}
	}
}

func (v vocabularies) add(namespace, word string) {
	if word == "" {
		return
	}
	if v[namespace] == nil {
		v[namespace] = map[string]bool{}
	}
	v[namespace][word] = true
}
