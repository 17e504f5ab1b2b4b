package dashboard

import (
	"net/http"
	"net/url"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/rollout"
)

// whyView is why an object waits.
type whyView struct {
	Ref   describe.Ref
	Chain explain.Chain
	// Unit is the object as the ring describes it, nil if none does.
	Unit    *describe.Unit
	Drawing *drawing
	// Verbs are what the viewer can do to it, Said is what they have just done.
	Verbs []string
	Said  string
}

// why is the page of one object.
func (p *viewer) why(r *http.Request) (*view, error) {
	ref, err := p.object(r)
	if err != nil {
		return nil, err
	}
	found, err := p.Explain(r.Context(), ref)
	if err != nil {
		return nil, err
	}
	s := p.live.current() //nolint:contextcheck // a look is everybody's
	v := whyView{Ref: ref, Chain: found, Unit: describe.Find(s.Description.Units, ref)}
	if p.Steering != nil {
		v.Verbs, v.Said = p.Verbs(ref.Kind), p.said(r)
	}
	drawn := v.Unit
	if p.Of != nil && (ref.Kind == describe.KindConfigMap || ref.Kind == describe.KindSecret) {
		if drawn, err = p.Of(r.Context(), ref); err != nil {
			return nil, err
		}
	}
	if drawn != nil {
		v.Drawing = draw(drawn)
	}
	return &view{file: "why", Title: "Why " + ref.String(), Version: s.Version, value: found, Of: &v}, nil
}

// object is the one that a page is about.
func (p *viewer) object(r *http.Request) (describe.Ref, error) {
	namespace := r.URL.Query().Get("namespace")
	if namespace == "" {
		namespace = p.Namespace
	}
	ref, err := p.Named(namespace, r.PathValue("kind")+"/"+r.PathValue("name"))
	if err != nil {
		return ref, requestError{err}
	}
	return ref, nil
}

// Next is the page of what comes next for the object.
func (v *whyView) Next() string {
	return "/next?object=" + url.QueryEscape(v.Ref.String()) + "&namespace=" + url.QueryEscape(v.Ref.Namespace)
}

// Acts lead to what can be done to the object as it is, and to a gate that it waits for.
func (v *whyView) Acts() []link {
	var acts []link
	for _, verb := range v.Verbs {
		if v.mayHelp(verb) {
			acts = append(acts, link{actPath(verb, v.Ref), button(verb)})
		}
	}
	for i := range v.Chain.Links {
		if l := &v.Chain.Links[i]; len(v.Verbs) > 0 && l.Kind == describe.KindGate && l.Ref != v.Ref {
			for _, verb := range []string{"approve", "refuse"} {
				acts = append(acts, link{actPath(verb, l.Ref), titles[verb] + " " + l.Name})
			}
		}
	}
	return acts
}

// mayHelp is false of what would certainly do nothing to the object as it is.
func (v *whyView) mayHelp(verb string) bool {
	isPaused := v.Unit != nil && (v.Unit.Paused || v.Unit.Phase == rollout.PhasePaused)
	hasFailed := v.Unit == nil || v.Unit.Phase == rollout.PhaseFailed || v.Unit.Phase == describe.PhaseStalled
	switch verb {
	case "pause":
		return !isPaused
	case "retry":
		return hasFailed
	case "approve", "refuse":
		return v.Ref.Kind == describe.KindGate
	default:
		return true
	}
}
