package display

import (
	"strings"
	"testing"
)

func factsOf(width int, add func(*Facts)) string {
	var b strings.Builder
	f := NewFacts(&b, Style{Width: width})
	add(f)
	f.Write()
	return "\n" + b.String()
}

func TestFacts(t *testing.T) {
	const long = "Pod ingester-a-0 is not ready: its container waits for ConfigMap limits, which was not created yet"
	add := func(f *Facts) {
		f.row("phase", "Progressing")
		f.row("zone", "ingester-zone-a", "1/3 updated, 2 ready", "Waiting: "+long)
		f.row("zone", "b", "3/3 updated, 3 ready", "Complete\x1b[31m\nfor\x1flong")
		f.row("cluster", strings.Repeat("c", 60), "GateRefused", long)
		f.row("note", long)
	}
	for name, test := range map[string]struct {
		width int
		want  string
	}{
		"elsewhere lines are whole": {0, `
  phase    Progressing
  zone     ingester-zone-a                                               1/3 updated, 2 ready  Waiting: ` + long + `
  zone     b                                                             3/3 updated, 3 ready  Complete[31m forlong
  cluster  ` + strings.Repeat("c", 60) + `  GateRefused           ` + long + `
  note     ` + long + `
`},
		"on a terminal the text stays a column, or stands below": {80, `
  phase    Progressing
  zone     ingester-zone-a                                               1/3 updated, 2 ready
        Waiting: Pod ingester-a-0 is not ready: its container waits for
        ConfigMap limits, which was not created yet
  zone     b                                                             3/3 updated, 3 ready
        Complete[31m forlong
  cluster  ` + strings.Repeat("c", 60) + `  GateRefused
        Pod ingester-a-0 is not ready: its container waits for ConfigMap limits,
        which was not created yet
  note     Pod ingester-a-0 is not ready: its container waits for ConfigMap
           limits, which was not created yet
`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := factsOf(test.width, add); got != test.want {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
		})
	}
}
