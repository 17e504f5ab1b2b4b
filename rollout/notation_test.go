package rollout_test

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/rollout"
)

// noon is when every test and story begins.
var noon = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

// parseTree reads a tree in the notation of testdata/README.md: a unit a line,
// indented beneath the one that it belongs to. The root has no line but, where
// the first one begins with a dot, attributes.
func parseTree(t testing.TB, now time.Time, text string) rollout.Unit {
	t.Helper()

	root := rollout.Unit{Group: true}
	open := []*rollout.Unit{&root}
	depths := []int{-1}

	for line := range strings.SplitSeq(text, "\n") {
		fields := splitFields(line)
		if len(fields) == 0 {
			continue
		}

		if fields[0] == "." {
			describe(t, now, &root, fields[1:])

			continue
		}

		depth := len(line) - len(strings.TrimLeft(line, " "))
		for depth <= depths[len(depths)-1] {
			open, depths = open[:len(open)-1], depths[:len(depths)-1]
		}

		u := rollout.Unit{Name: fields[0], Leaf: rollout.Leaf{Health: rollout.Healthy}}
		describe(t, now, &u, fields[1:])

		parent := open[len(open)-1]
		parent.Children = append(parent.Children, u)
		open, depths = append(open, &parent.Children[len(parent.Children)-1]), append(depths, depth)
	}

	return root
}

// splitFields splits at spaces outside of double quotes, and drops the quotes.
func splitFields(line string) []string {
	var (
		fields []string
		field  strings.Builder
		quoted bool
	)

	for _, r := range strings.TrimSpace(line) + " " {
		switch {
		case r == '"':
			quoted = !quoted
		case r == ' ' && !quoted:
			if field.Len() > 0 {
				fields = append(fields, field.String())
				field.Reset()
			}
		default:
			field.WriteRune(r)
		}
	}

	return fields
}

// describe applies the attributes of a line to its unit.
func describe(t testing.TB, now time.Time, u *rollout.Unit, attributes []string) {
	t.Helper()

	for _, attribute := range attributes {
		key, value, _ := strings.Cut(attribute, "=")

		apply, known := notation[key]
		if !known {
			apply, value = revision, attribute
		}

		if err := apply(u, now, value); err != nil {
			t.Fatalf("%s: %s: %v", u.Name, attribute, err)
		}
	}
}

type attribute func(u *rollout.Unit, now time.Time, value string) error

// notation is every attribute that a line may have, besides "v1" and "v1>v2".
var notation = map[string]attribute{
	"group":           func(u *rollout.Unit, _ time.Time, _ string) error { u.Group = true; return nil },
	"parallel":        order(rollout.Parallel),
	"series":          order(rollout.Series),
	"one-at-a-time":   order(rollout.OneAtATime),
	"max-unavailable": limit(func(u *rollout.Unit) *rollout.Limit { return &u.Policy.MaxUnavailable }),
	"max-failures":    limit(func(u *rollout.Unit) *rollout.Limit { return &u.Policy.MaxFailures }),
	"min-ready":       duration(func(u *rollout.Unit) *time.Duration { return &u.Policy.MinReady }),
	"soak":            duration(func(u *rollout.Unit) *time.Duration { return &u.Policy.Soak }),
	"deadline":        duration(func(u *rollout.Unit) *time.Duration { return &u.Policy.Deadline }),
	"timeout":         duration(func(u *rollout.Unit) *time.Duration { return &u.Policy.Timeout }),
	"every":           duration(func(u *rollout.Unit) *time.Duration { return &u.Policy.Rate.Every }),
	"burst":           number(func(u *rollout.Unit) *int { return &u.Policy.Rate.Burst }),
	"priority":        number(func(u *rollout.Unit) *int { return &u.Leaf.Priority }),
	"on-failure":      onFailure,
	"starts":          starts,
	"started":         ago(func(u *rollout.Unit) *time.Time { return &u.StartedAt }),
	"healthy":         healthySince,
	"unknown":         health(rollout.Unknown),
	"progressing":     health(rollout.Progressing),
	"degraded":        health(rollout.Degraded),
	"cause":           func(u *rollout.Unit, _ time.Time, v string) error { u.Leaf.Cause = rollout.Reason(v); return nil },
	"failed":          health(rollout.Failed),
	"settled":         func(u *rollout.Unit, _ time.Time, _ string) error { u.Leaf.Settled = true; return nil },
	"lost":            ago(func(u *rollout.Unit) *time.Time { return &u.Leaf.LostSince }),
	"recovers":        recovers,
	"retry":           retry,
	"paused":          paused,
	"blocked":         blocked,
	"before":          gate(rollout.Before),
	"after":           gate(rollout.After),
	"during":          gate(rollout.During),
	"lock":            lock,
	"gone": func(u *rollout.Unit, _ time.Time, _ string) error {
		u.Leaf.Current, u.Leaf.Target = rollout.Removed, rollout.Removed
		return nil
	},
	"max-removed":  limit(func(u *rollout.Unit) *rollout.Limit { return &u.Policy.MaxRemoved }),
	"removed":      number(func(u *rollout.Unit) *int { return &u.Policy.Removed }),
	"approved":     number(func(u *rollout.Unit) *int { return &u.Policy.RemovalsApproved }),
	"budget":       func(u *rollout.Unit, _ time.Time, name string) error { u.Policy.Budget = name; return nil },
	"whole":        whole,
	"mute":         func(u *rollout.Unit, _ time.Time, why string) error { u.Leaf.NoEvidence = why; return nil },
	"min-evidence": number(func(u *rollout.Unit) *int { return &u.Policy.MinEvidence }),
}

func revision(u *rollout.Unit, _ time.Time, value string) error {
	current, target, moves := strings.Cut(value, ">")
	if !moves {
		target = current
	}

	if strings.HasPrefix(current, "-") {
		current = ""
	}

	if target == "gone" {
		target = rollout.Removed
	}

	u.Leaf.Current, u.Leaf.Target = current, target

	return nil
}

func order(o rollout.Order) attribute {
	return func(u *rollout.Unit, _ time.Time, _ string) error {
		u.Policy.Order = o

		return nil
	}
}

func limit(of func(*rollout.Unit) *rollout.Limit) attribute {
	return func(u *rollout.Unit, _ time.Time, value string) error {
		n, err := strconv.Atoi(strings.TrimSuffix(value, "%"))

		*of(u) = rollout.Number(n)
		if strings.HasSuffix(value, "%") {
			*of(u) = rollout.Percentage(n)
		}

		return err
	}
}

func duration(of func(*rollout.Unit) *time.Duration) attribute {
	return func(u *rollout.Unit, _ time.Time, value string) error {
		d, err := time.ParseDuration(value)
		*of(u) = d

		return err
	}
}

func number(of func(*rollout.Unit) *int) attribute {
	return func(u *rollout.Unit, _ time.Time, value string) error {
		n, err := strconv.Atoi(value)
		*of(u) = n

		return err
	}
}

func ago(of func(*rollout.Unit) *time.Time) attribute {
	return func(u *rollout.Unit, now time.Time, value string) error {
		d, err := time.ParseDuration(value)
		*of(u) = now.Add(-d)

		return err
	}
}

// recovers reads "recovers=30s": until then it may.
func recovers(u *rollout.Unit, now time.Time, value string) error {
	d, err := time.ParseDuration(value)
	u.Leaf.MayRecover, u.Leaf.RecoversBy = d > 0, now.Add(d)

	return err
}

// health reads "failed" and "failed=the reason".
func health(h rollout.Health) attribute {
	return func(u *rollout.Unit, _ time.Time, value string) error {
		u.Leaf.Health, u.Leaf.Reason = h, value

		return nil
	}
}

// healthySince reads "healthy" and "healthy=30s".
func healthySince(u *rollout.Unit, now time.Time, value string) error {
	u.Leaf.Health = rollout.Healthy
	if value == "" {
		return nil
	}

	return ago(func(u *rollout.Unit) *time.Time { return &u.Leaf.HealthySince })(u, now, value)
}

func onFailure(u *rollout.Unit, _ time.Time, value string) error {
	answers := map[string]rollout.OnFailure{
		"stop": rollout.Stop, "continue": rollout.Continue, "rollback": rollout.Rollback,
	}

	answer, known := answers[value]
	if !known {
		return fmt.Errorf("unknown answer %q", value)
	}

	u.Policy.OnFailure = answer

	return nil
}

// starts reads "starts=5s,12s", that long ago.
func starts(u *rollout.Unit, now time.Time, value string) error {
	for s := range strings.SplitSeq(value, ",") {
		d, err := time.ParseDuration(s)
		if err != nil {
			return err
		}

		u.Policy.Rate.Starts = append(u.Policy.Rate.Starts, now.Add(-d))
	}

	return nil
}

// retry reads "retry=30s" and "retry=30s:what failed", from now on.
func retry(u *rollout.Unit, now time.Time, value string) error {
	in, reason, _ := strings.Cut(value, ":")
	d, err := time.ParseDuration(in)
	u.Leaf.RetryAt, u.Leaf.RetryReason = now.Add(d), reason

	return err
}

// whole reads "whole=revision:why it is kept".
func whole(u *rollout.Unit, _ time.Time, value string) error {
	revision, message, _ := strings.Cut(value, ":")
	u.Whole = &rollout.Whole{Revision: revision, Reason: "Whole", Message: message}

	return nil
}

// paused reads "paused", "paused=alice" and "paused=alice:why".
func paused(u *rollout.Unit, now time.Time, value string) error {
	by, reason, _ := strings.Cut(value, ":")
	u.Pause = &rollout.Pause{By: by, Reason: reason, Since: now}

	return nil
}

// blocked reads "blocked=Reason:message" and "blocked=Reason:message:30s".
func blocked(u *rollout.Unit, now time.Time, value string) error {
	parts := strings.Split(value+"::", ":")
	u.Block = &rollout.Block{Reason: rollout.Reason(parts[0]), Message: parts[1]}

	if parts[2] == "" {
		return nil
	}

	d, err := time.ParseDuration(parts[2])
	u.Block.Until = now.Add(d)

	return err
}

// gate reads "before=name", "before=name:passed", "before=name:refused:message" and
// "before=name:refused:message:rollback".
func gate(when rollout.When) attribute {
	return func(u *rollout.Unit, _ time.Time, value string) error {
		parts := strings.Split(value+":::", ":")
		verdicts := map[string]rollout.Verdict{
			"": rollout.Pending, "pending": rollout.Pending, "passed": rollout.Passed, "refused": rollout.Refused,
		}

		verdict, known := verdicts[parts[1]]
		if !known {
			return fmt.Errorf("unknown verdict %q", parts[1])
		}

		answers := map[string]rollout.OnFailure{"": rollout.Stop, "continue": rollout.Continue, "rollback": rollout.Rollback}

		answer, known := answers[parts[3]]
		if !known {
			return fmt.Errorf("unknown answer %q", parts[3])
		}

		u.Gates = append(u.Gates, rollout.Gate{Name: parts[0], When: when, Verdict: verdict, OnRefusal: answer, Message: parts[2]})

		return nil
	}
}

// lock reads "lock", free, and "lock=holder:purpose:unit", since ten minutes.
func lock(u *rollout.Unit, now time.Time, value string) error {
	u.Lock = &rollout.Lock{}
	if value == "" {
		return nil
	}

	parts := strings.Split(value+"::", ":")
	*u.Lock = rollout.Lock{Holder: parts[0], Purpose: parts[1], Unit: parts[2], Since: now.Add(-10 * time.Minute)}

	return nil
}

// printPlan writes a plan a line a step and a hold, to be read and compared.
func printPlan(p rollout.Plan) string {
	var b strings.Builder

	fmt.Fprintf(&b, "%s", p.Phase)

	if !p.Wake.IsZero() {
		fmt.Fprintf(&b, ", look again at %s", p.Wake.Format(time.TimeOnly))
	}

	b.WriteString("\n")

	if p.Acquire != nil {
		fmt.Fprintf(&b, "  lock  taken for %s\n", strings.TrimSpace(p.Acquire.Purpose+" "+p.Acquire.Unit))
	}

	if p.Release {
		b.WriteString("  lock  released\n")
	}

	for _, s := range p.Steps {
		fmt.Fprintf(&b, "  step  %s%s\n", s.Message(), startOf[s.Start])
	}

	for _, g := range group(p.Holds) {
		fmt.Fprintf(&b, "  hold  %s\n", g)
	}

	return b.String()
}

// startOf is what a step says of its unit that starts as a whole.
var startOf = map[rollout.Start]string{rollout.StartWhole: ", and all of its unit", rollout.StartEach: ", but not all of its unit"}

// printGroups writes what a plan says of each unit with others beneath it.
func printGroups(p rollout.Plan) string {
	var b strings.Builder

	for _, g := range p.Groups {
		c := g.Counts
		fmt.Fprintf(&b, "%s: %s, %d leaves, %d updated, %d available, %d ready, %d failed, %d steps, %d holds",
			cmp.Or(g.Path.String(), "all"), g.Phase, c.Total, c.Updated, c.Available, c.Ready, c.Failed, g.Steps, len(g.Holds))

		words := []string{", complete", ", failing", ", free"}
		for i, is := range []bool{g.Complete, g.Failing, g.Free} {
			if is {
				b.WriteString(words[i])
			}
		}

		b.WriteString("\n")
	}

	return b.String()
}

// group writes the holds, those that follow one another and say the same as one.
func group(holds []rollout.Hold) []string {
	var lines []string

	for i := 0; i < len(holds); {
		j := i + 1
		for j < len(holds) && holds[j].Message == holds[i].Message {
			j++
		}

		names := make([]string, 0, j-i)
		for _, h := range holds[i:j] {
			names = append(names, h.Path.String())
		}

		line := fmt.Sprintf("%s [%s] %s", strings.Join(names, ", "), holds[i].Reason, holds[i].Message)
		lines = append(lines, line)
		i = j
	}

	return lines
}
