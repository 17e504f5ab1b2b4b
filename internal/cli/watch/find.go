package watch

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/rollout"
)

// find takes what is typed for the filter, which applies immediately.
func (m *watchModel) find(key tea.KeyPressMsg) {
	switch key.String() {
	case "esc", "ctrl+c":
		m.filter, m.filtering = "", false
	case "enter":
		m.filtering = false
	case "backspace":
		typed := []rune(m.filter)
		m.filter = string(typed[:max(len(typed)-1, 0)])
	default:
		m.filter += display.Plain(key.Text)
	}
	m.selectShown()
}

// selectShown selects something that is shown, if there is anything.
func (m *watchModel) selectShown() {
	if branches := m.branches(); len(branches) > 0 && indexOf(branches, m.selected) < 0 {
		m.selected = branches[min(max(m.top, 0), len(branches)-1)].key
	}
}

// finds is true of a unit whose name or sentence contains the filter, and of one that has
// such a unit beneath it.
func (m *watchModel) finds(u *describe.Unit) bool {
	if m.filter == "" {
		return true
	}
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(m.filter)) }
	if has(u.Namespace+"/"+display.Name(u)) || has(u.Sentence) {
		return true
	}
	for i := range u.Units {
		if m.finds(&u.Units[i]) {
			return true
		}
	}
	return false
}

// jump selects the next that waits or needs an action; what consists of others counts only
// if it is folded.
func (m *watchModel) jump() {
	branches := m.branches()
	from := indexOf(branches, m.selected) + 1
	for i := range branches {
		b := &branches[(from+i)%len(branches)]
		if isStopped(b.unit) && (len(b.unit.Units) == 0 || m.isFolded(b)) {
			m.selected = b.key
			return
		}
	}
	m.said = &steered{said: m.soFar("nothing waits"), ok: true}
}

// isStopped is true of what neither is complete nor moves, as far as that is known.
func isStopped(u *describe.Unit) bool {
	return !slices.Contains([]rollout.Phase{"", describe.PhaseReading, rollout.PhaseComplete, rollout.PhaseProgressing}, u.Phase)
}
