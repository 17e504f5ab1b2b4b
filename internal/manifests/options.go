package manifests

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/plans/account"
)

// Options say what to install.
type Options struct {
	// Namespace is where the manager runs.
	Namespace string
	// Version is that of the program, for the labels of what rings declare.
	Version string
	// Image is the manager's.
	Image string
	// OnlyKinds leaves out all but the CustomResourceDefinitions.
	OnlyKinds bool
	// Values are those of the chart; Image is used instead of theirs.
	Values Values
}

// DefaultNamespace is that of the manager unless a user names another.
const DefaultNamespace = "spillway-system"

// Default returns the options that hold unless a user says otherwise, for some rings.
func Default(rings ...string) Options {
	o := Options{Values: DefaultValues()}
	o.Values.Rings = rings
	return o
}

// Validate says what is wrong with the options, by the names of their flags.
func (o *Options) Validate() error {
	if err := errors.Join(o.Values.validateName(), o.Values.validatePins(), o.Values.validateAccounts()); err != nil {
		return err
	}
	if err := o.Values.Dashboard.validate(); err != nil {
		return err
	}
	if err := o.Values.validatePolicy(); err != nil {
		return err
	}
	w := o.Values.Webhooks
	if slices.Equal(w.Configurations, []string{All}) {
		w.Configurations = nil
	}
	served := admission.Options{Namespace: name, Source: w.CertificateSource, CertDir: "/certificates", Hosts: w.Hosts, Only: w.Configurations}
	return served.Validate()
}

// validatePins says what is wrong with the namespaces with pins, by the name of the flag.
func (v *Values) validatePins() error {
	pins, err := v.Pins()
	switch {
	case err != nil:
		return err
	case !slices.Contains([]pin.By{"", pin.ByPolicy, pin.ByWebhook}, v.PinBy):
		return fmt.Errorf("--pin-by: %q is not known; use %s or %s", v.PinBy, pin.ByPolicy, pin.ByWebhook)
	case v.PinBy == pin.ByWebhook && !pins.IsEmpty() && !v.Webhooks.Enabled:
		return errors.New("--pin-by: webhook needs the webhooks of the rings; leave --webhooks=false out, or use policy")
	case !pins.IsEmpty() && !slices.Contains(v.Rings, manager.RingConfig):
		flag, _, _ := strings.Cut(pins.String(), "=")
		return fmt.Errorf("%s: pins are of the ring %s; add it to --rings", flag, manager.RingConfig)
	default:
		return nil
	}
}

// Pins returns the namespaces where pins are on.
func (v *Values) Pins() (pin.Namespaces, error) {
	f := pin.Flags{Names: v.PinNamespaces, Watched: v.WatchNamespaces, WatchedBy: "--watch-namespaces"}
	if v.PinSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(v.PinSelector)
		if err != nil {
			return pin.Namespaces{}, fmt.Errorf("--pin-namespace-selector: %w", err)
		}
		f.Selector = selector.String()
	}
	if len(f.Watched) > 0 {
		f.WatchedBy += "=" + strings.Join(f.Watched, ",")
	}
	return f.Namespaces()
}

// SetPins sets the namespaces where pins are on.
func (v *Values) SetPins(n pin.Namespaces) {
	switch v.PinNamespaces, v.PinSelector = n.Names, nil; {
	case n.All:
		v.PinNamespaces = []string{pin.All}
	case n.Selector != nil:
		v.PinSelector = n.LabelSelector()
	}
}

// validatePolicy says what is wrong with the spec of the default policy.
func (v *Values) validatePolicy() error {
	if len(v.DefaultPolicySpec) == 0 {
		return nil
	}
	raw, err := json.Marshal(v.DefaultPolicySpec)
	if err == nil {
		_, err = policy.DefaultWith(string(raw))
	}
	if err != nil {
		return fmt.Errorf("defaultConfigPolicySpec: %w", err)
	}
	return nil
}

// validate says what is wrong with the dashboard, by the names of its values.
func (d *Dashboard) validate() error {
	switch {
	case d.Enabled && d.Replicas < 1:
		return errors.New("dashboard.replicas: must be at least 1; to have no dashboard, set dashboard.enabled to false")
	case d.Ingress.Enabled && d.Ingress.Host == "":
		return errors.New("dashboard.ingress.host: name the host by which browsers reach the dashboard, the one in --url")
	case d.HTTPRoute.Enabled && len(d.HTTPRoute.ParentRefs) == 0:
		return errors.New("dashboard.httpRoute.parentRefs: name the Gateway that the route is attached to, such as {name: public, namespace: gateways}")
	default:
		return nil
	}
}

// validateAccounts says what is wrong with the accounts of plans, by the names of the flags.
func (v *Values) validateAccounts() error {
	if (len(v.PlanAccounts) > 0 || v.DefaultAccount != "") && !slices.Contains(v.Rings, manager.RingPlans) {
		return fmt.Errorf("--plan-accounts, --default-service-account: accounts are of the ring %s; add it to --rings", manager.RingPlans)
	}
	for _, name := range append([]string{v.DefaultAccount}, v.PlanAccounts...) {
		if why := account.Problem(name); why != "" && (name != All || name == v.DefaultAccount) {
			return fmt.Errorf("--plan-accounts, --default-service-account: %s", why)
		}
	}
	return nil
}

// values returns the values as the chart reads them.
func (o *Options) values() (map[string]any, error) {
	v := o.Values
	v.Image.Repository, v.Image.Tag, v.Image.Digest = split(o.Image)
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	values := map[string]any{}
	if err := json.Unmarshal(raw, &values); err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	if image, ok := values["image"].(map[string]any); ok && v.Image.Tag == "" {
		delete(image, "tag") // the one of the version is for users who name none
	}
	return values, nil
}

// split returns the parts of the name of an image. One with a digest has its tag in the repository.
func split(image string) (repository, tag, digest string) {
	if repository, digest, ok := strings.Cut(image, "@"); ok {
		return repository, "", digest
	}
	tag = tagOf(image)
	return strings.TrimSuffix(image, tag), strings.TrimPrefix(tag, ":"), ""
}

// tagOf is the tag of an image, with its colon. Another registry may have made another
// digest, so that is left out; the port of a registry is none.
func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	colon := strings.LastIndexByte(image, ':')
	if colon < strings.LastIndexByte(image, '/') || colon < 0 {
		return ""
	}
	return image[colon:]
}
