package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spillway-dev/spillway/rollout"
)

// Read reads the decisions in a folder, or in a file, in the order in which they were made. A file that ends in the middle of a
// decision is of a manager that was stopped, or that decides still.
func Read(path string, each func(*Decision) error) error {
	files := []string{path}
	if info, err := os.Stat(path); err != nil {
		return fmt.Errorf("read decisions: %w", err)
	} else if info.IsDir() {
		if files, err = filesIn(path); err != nil {
			return err
		}
		if len(files) == 0 {
			return fmt.Errorf("%s has no files *%s; name the folder that --record-decisions names, or a file that replay --export has written", path, extension)
		}
	}
	for _, file := range files {
		if err := readFile(file, each); err != nil {
			return err
		}
	}
	return nil
}

func readFile(path string, each func(*Decision) error) error {
	f, err := os.Open(path) //nolint:gosec // the user names it
	if err != nil {
		return fmt.Errorf("read decisions: %w", err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	zip, err := gzip.NewReader(bufio.NewReader(f))
	if isCut(err) {
		return nil // a file that was just begun
	}
	if err != nil {
		return fmt.Errorf("%s is no record of decisions: %w", path, err)
	}
	for decoder := gob.NewDecoder(zip); ; {
		d := &Decision{}
		err := decoder.Decode(d)
		if isCut(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s is no record of decisions: %w", path, err)
		}
		if err := each(d); err != nil {
			return err
		}
	}
}

func isCut(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// Export writes the decisions in folders and files as one file.
func Export(to io.Writer, paths []string) error {
	out := newStream(nopCloser{to})
	for _, path := range paths {
		if err := Read(path, out.encode); err != nil {
			return err
		}
	}
	if out.size == 0 {
		return errors.New("nothing was decided yet")
	}
	return out.Close()
}

// nopCloser is left open.
type nopCloser struct{ io.Writer }

// Close does nothing.
func (nopCloser) Close() error { return nil }

// Difference is a decision that this program makes in another way.
type Difference struct {
	At time.Time `json:"at"`
	// Of is what it is about, and Version that of the program that has made it.
	Of      string `json:"of"`
	Version string `json:"version"`
	// Differences are what differs, by unit.
	Differences []string `json:"differences"`
}

// Replayed is what came of deciding again what was recorded.
type Replayed struct {
	// Decisions is how many there are, made From one time To another.
	Decisions int       `json:"decisions"`
	From      time.Time `json:"from,omitzero"`
	To        time.Time `json:"to,omitzero"`
	// Versions are those of the programs that have decided, and Version is that of the one that decides now.
	Versions  []string     `json:"versions"`
	Version   string       `json:"version"`
	Differing []Difference `json:"differing"`
}

// Again decides what was recorded in folders and files once more, with this version of the program.
func Again(version string, paths []string) (r Replayed, err error) {
	r = Replayed{Version: version, Differing: []Difference{}}
	for _, path := range paths {
		if err := Read(path, r.again); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (r *Replayed) again(d *Decision) error {
	if r.Decisions == 0 {
		r.From = d.Observed.Now
	}
	r.Decisions++
	r.To = d.Observed.Now
	if !slices.Contains(r.Versions, d.Version) {
		r.Versions = append(r.Versions, d.Version)
	}
	plan := rollout.Decide(d.Observed)
	now := decided(&plan)
	was, err := encoded(&d.Decided)
	if err != nil {
		return err
	}
	is, err := encoded(&now)
	if err == nil && !bytes.Equal(was, is) {
		r.Differing = append(r.Differing, Difference{At: d.Observed.Now, Of: d.Of, Version: d.Version, Differences: differences(&d.Decided, &now)})
	}
	return err
}

// encoded are the bytes of what was decided.
func encoded(d *Decided) ([]byte, error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(d); err != nil {
		return nil, fmt.Errorf("encode a decision: %w", err)
	}
	return b.Bytes(), nil
}

// differences say how two decisions differ: for each unit, and for the whole, what was decided and what is decided now.
func differences(before, now *Decided) (lines []string) {
	was, is := said(before), said(now)
	var names []string
	for name := range was {
		names = append(names, name)
	}
	for name := range is {
		if _, both := was[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if was[name] != is[name] {
			lines = append(lines, fmt.Sprintf("%s: %s -> %s", name, orNothing(was[name]), orNothing(is[name])))
		}
	}
	if len(lines) == 0 {
		lines = []string{"the same for every unit, in another order"}
	}
	return lines
}

func orNothing(said string) string {
	if said == "" {
		return "nothing"
	}
	return said
}

// said is what was decided, by unit.
func said(p *Decided) map[string]string {
	all := map[string]string{"phase": string(p.Phase)}
	if !p.Wake.IsZero() {
		all["looks again"] = rollout.Clock(p.Wake)
	}
	if p.Acquire != nil {
		all["lock"] = "takes it for " + p.Acquire.Purpose + " " + p.Acquire.Unit
	}
	if p.Release {
		all["lock"] = "releases it"
	}
	for _, wait := range p.Waits {
		all["unit "+wait.Path.String()] = fmt.Sprintf("waits (%s)", wait.Reason)
		if !wait.Until.IsZero() {
			all["unit "+wait.Path.String()] += " until " + rollout.Clock(wait.Until)
		}
	}
	for i := range p.Steps {
		all["unit "+p.Steps[i].Path.String()] = fmt.Sprintf("step %d, from %q to %q", i+1, p.Steps[i].From, p.Steps[i].To)
	}
	return all
}
