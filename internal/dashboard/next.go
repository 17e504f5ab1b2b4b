package dashboard

import (
	"net/http"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/simulate/forecast"
	"github.com/spillway-dev/spillway/internal/simulate/record"
)

// nextView is what comes next.
type nextView struct {
	forecast.Answer

	Object, Namespace string
	Ifs               []string
	Suppositions      []string
}

// next is the page of the forecast.
func (p *viewer) next(r *http.Request) (*view, error) {
	query := r.URL.Query()
	v := nextView{Object: query.Get("object"), Namespace: query.Get("namespace"), Suppositions: forecast.Suppositions()}
	namespace, object := v.Namespace, ""
	if namespace == "" {
		namespace = p.Namespace
	}
	if v.Object != "" {
		ref, err := p.Named(namespace, v.Object)
		if err != nil {
			return nil, requestError{err}
		}
		object = record.Reference(ref.Kind, ref.Name)
	}
	var ifs []forecast.Supposition
	for _, text := range query["if"] {
		if text == "" { // a field that was left empty
			continue
		}
		s, err := forecast.ParseSupposition(text)
		if err != nil {
			return nil, requestError{err}
		}
		ifs, v.Ifs = append(ifs, s), append(v.Ifs, text)
	}
	select {
	case p.foreseeing <- struct{}{}:
		defer func() { <-p.foreseeing }()
	default:
		return nil, errBusy
	}
	answer, err := p.Forecast(r.Context(), namespace, object, ifs)
	if err != nil {
		return nil, err
	}
	v.Answer = answer
	missing := p.NoManager(r.Context(), len(answer.Rollouts) > 0)
	return &view{file: "next", Title: "Next", NoManager: missing, value: answer, Of: &v}, nil
}

// All says when all of it has ended, empty of one rollout.
func (v *nextView) All() string {
	if len(v.Rollouts) < 2 { //nolint:mnd // one says so itself
		return ""
	}
	if all := forecast.AllEnd(v.Rollouts); all != nil {
		return "All of this ends " + describe.In(v.At, *all) + "."
	}
	return "Not all of this ends automatically."
}

// Line draws when each rollout ends.
func (v *nextView) Line() *drawing { return timelines(v.At, v.Rollouts) }

// Command is the one that says the same.
func (v *nextView) Command() string {
	words := []string{"spillway", "forecast"}
	if v.Object != "" {
		words = append(words, v.Object)
	}
	if v.Namespace != "" {
		words = append(words, "-n", v.Namespace)
	}
	for _, text := range v.Ifs {
		words = append(words, "--if", text)
	}
	return strings.Join(words, " ")
}

// course is how one rollout goes on.
type course struct {
	Text    string
	Drawing *drawing
}

func courseOf(now time.Time, c *forecast.Course, prefix string) course {
	text := prefix + ends(now, c)
	return course{text, timeline(now, c, c.Object+": "+text)}
}

// begins is when a step begins, a dash if it is not taken.
func begins(now time.Time, when *describe.Range) string {
	if when == nil {
		return "-"
	}
	return describe.In(now, *when)
}

// ends says when a rollout ends, or why it does not.
func ends(now time.Time, c *forecast.Course) string {
	switch {
	case c.Waits != nil:
		return "It waits: " + c.Waits.Sentence
	case c.Ends == nil:
		return "It waits."
	case c.Decides != "":
		return "It ends " + describe.In(now, *c.Ends) + "; " + c.Decides[strings.LastIndex(c.Decides, "/")+1:] + " decides when."
	default:
		return "It ends " + describe.In(now, *c.Ends) + "."
	}
}
