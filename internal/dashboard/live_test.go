package dashboard

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/rollout"
)

// However much changes, looks leave most of the time to others; and one that costs the API server
// something is not followed by many.
func TestLooksRest(t *testing.T) {
	for _, c := range []struct {
		took  time.Duration
		asked bool
		want  time.Duration
	}{
		{0, false, restLeast}, {80 * time.Millisecond, false, 160 * time.Millisecond}, {2 * time.Second, false, 4 * time.Second}, {time.Minute, false, restMost},
		{0, true, restAsked}, {80 * time.Millisecond, true, restAsked}, {2 * time.Second, true, 4 * time.Second},
	} {
		if got := restAfter(c.took, c.asked); got != c.want {
			t.Errorf("after %s (asked: %v): %s, want %s", c.took, c.asked, got, c.want)
		}
	}
}

// What changes because time passes is shown though no watch says so, while a page is open.
func TestTimeAlone(t *testing.T) {
	c, address := serve(t, group(rollout.PhaseWaiting))
	c.mu.Lock()
	c.wake = c.now.Add(restLeast)
	c.mu.Unlock()
	ids, leave := follow(t, address+"/live?version=0")
	defer leave()
	if id := <-ids; id != "id: 1" {
		t.Error(id)
	}
	c.mu.Lock()
	c.units, c.now, c.wake = []describe.Unit{group(rollout.PhaseProgressing)}, c.now.Add(time.Minute), time.Time{}
	c.mu.Unlock()
	if id := <-ids; id != "id: 2" {
		t.Error(id)
	}
	if _, _, text := ask(t, address+"/"); !strings.Contains(text, "What moves") {
		t.Error(text)
	}
}

// counting says what a page is about, and counts how often it is rendered.
type counting struct {
	of   *view
	made *int
}

func (c counting) String() string {
	*c.made++
	return fmt.Sprintf("%d %s %s", c.of.Version, c.of.shared, c.of.Now.Format(time.TimeOnly))
}

// Windows that show the same cost one page, which says how long ago things were as of now.
func TestWindowsShareAPage(t *testing.T) {
	made, r := 0, &rendered{}
	page := func(version int, name string, now time.Time) string {
		v := &view{file: "note", Title: "Now", Version: version, shared: name, Now: now}
		v.Of = counting{v, &made}
		text, err := r.page(v)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	for i, c := range []struct {
		version int
		name    string
		now     time.Time
		want    string
		made    int
	}{
		{1, "first", noon, "1 first 12:00:00", 1}, {1, "first", noon.Add(time.Second - 1), "1 first 12:00:00", 1}, {1, "all", noon, "1 all 12:00:00", 2},
		{1, "first", noon, "1 first 12:00:00", 2}, {2, "first", noon, "2 first 12:00:00", 3}, {2, "first", noon.Add(time.Second), "2 first 12:00:01", 4},
	} {
		if text := page(c.version, c.name, c.now); !strings.Contains(text, "<p>"+c.want+"</p>") || made != c.made {
			t.Errorf("%d: made %d pages, the last of them: %s", i, made, text)
		}
	}
	c, address := serve(t, group(rollout.PhaseWaiting))
	_, _, before := ask(t, address+"/")
	if _, _, again := ask(t, address+"/"); again != before {
		t.Error(again)
	}
	if _, _, text := ask(t, address+"/", asJSON); !strings.HasPrefix(text, "{") || c.looks != 1 {
		t.Errorf("%d looks: %s", c.looks, text)
	}
	if status, _, _ := ask(t, address+"/?all"); status != http.StatusOK {
		t.Error(status)
	}
}
