package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/nearest"
	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/packages/origin"
	"github.com/spillway-dev/spillway/internal/plans/object"
)

// Environment is all that a command knows of the process that it runs in.
type Environment struct {
	// Args are the program's name and its arguments.
	Args     []string
	Out, Err io.Writer
	// Lookup finds an environment variable.
	Lookup func(name string) (value string, ok bool)
	// Now is the clock.
	Now func() time.Time
	// KUDO is true of a command that was called by the name of KUDO's: names of packages are
	// understood as it does, and results are written as it writes them.
	KUDO bool
}

// FromEnvironment sets the flags that were not given from the environment.
func FromEnvironment(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var failed error
	flags.VisitAll(func(f *pflag.Flag) {
		value, ok := lookup(Variable(f.Name))
		if !ok || f.Changed || failed != nil {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			failed = fmt.Errorf("environment variable %s: %s", Variable(f.Name), valueError(f, value, err))
		}
	})
	return failed
}

// Variable is the environment variable that a flag can be set by.
func Variable(flag string) string {
	return "SPILLWAY_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// SpendMemory lets a command that is over in a second, and needs some tens of megabytes, spend
// less of it on collecting garbage. One that goes on ends that with what it returns.
func SpendMemory() (save func()) {
	before := debug.SetGCPercent(400)
	return func() { debug.SetGCPercent(before) }
}

// ExitError is an error with an exit code of its own.
type ExitError struct {
	Err  error
	Code int
	// Said is true if the output has said it already, so that it is not printed again.
	Said bool
}

func (e ExitError) Error() string { return e.Err.Error() }

// Unwrap returns the error itself.
func (e ExitError) Unwrap() error { return e.Err }

// What the linker sets when a release is built.
var (
	Version = "" //nolint:gochecknoglobals // set by the linker
	// Commit is the hash of the commit, and Date when it was made.
	Commit = "" //nolint:gochecknoglobals // the same
	Date   = "" //nolint:gochecknoglobals // the same
	// ImageDigest is that of the image of this version. The program inside the image has
	// none, because the digest depends on it.
	ImageDigest = "" //nolint:gochecknoglobals // the same
)

// CurrentVersion returns the release, or that of the module, or "dev".
func CurrentVersion() string {
	if Version != "" {
		return Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// CurrentCommit returns the commit and its date, as far as they are known.
func CurrentCommit() (commit, date string) {
	if Commit != "" {
		return Commit, Date
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", ""
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			commit = setting.Value
		case "vcs.time":
			date = setting.Value
		}
	}
	return commit, date
}

// CurrentImage is the image of this version, by its digest where that is known.
func CurrentImage() string {
	image := manifests.Repository + ":" + strings.ReplaceAll(CurrentVersion(), "+", "-") // tags have no plus
	if ImageDigest != "" {
		image += "@" + ImageDigest
	}
	return image
}

// IsRelease is true of a program that was built as a release, which has an image.
func IsRelease() bool { return Version != "" }

// KubeVersion is the version of Kubernetes that something is for. It is a flag.
type KubeVersion struct {
	// Minor is that of version 1.
	Minor int
}

// AddFlag adds the flag.
func (v *KubeVersion) AddFlag(flags *pflag.FlagSet) {
	v.Minor = object.Latest
	flags.Var(v, "kube-version", "version of Kubernetes whose API versions templates may use")
}

// kubeVersion is a version as Kubernetes writes it, in full or in part.
var kubeVersion = regexp.MustCompile(`^v?1\.(\d{1,3})(\.|$)`)

// Set implements [pflag.Value].
func (v *KubeVersion) Set(text string) (err error) {
	m := kubeVersion.FindStringSubmatch(text)
	if m == nil {
		return errors.New(notVersion(text))
	}
	v.Minor, err = strconv.Atoi(m[1])
	return err //nolint:wrapcheck // it has digits only
}

func (v *KubeVersion) String() string { return "1." + strconv.Itoa(v.Minor) }

// Type implements [pflag.Value].
func (v *KubeVersion) Type() string { return versionType }

const versionType = "version"

func notVersion(value string) string {
	return fmt.Sprintf("%q is no version of Kubernetes; use one such as 1.%d", value, object.Latest)
}

// DryRun is the value of --dry-run, with the words that kubectl has. The zero value is none.
type DryRun struct {
	mode dryRunMode
}

type dryRunMode string

// The words of --dry-run.
const (
	dryRunNone   dryRunMode = "none"
	dryRunClient dryRunMode = "client"
	dryRunServer dryRunMode = "server"
)

// AddFlag adds the flag.
func (d *DryRun) AddFlag(flags *pflag.FlagSet) {
	d.AddFlagWith(flags, "client: write nothing, and print what would be written; server: also send the writes, which the API server checks and does not store")
}

// AddFlagWith adds the flag to a command that does something else for it than others do.
func (d *DryRun) AddFlagWith(flags *pflag.FlagSet, usage string) {
	d.mode = dryRunNone
	flags.Var(&d.mode, "dry-run", usage)
}

func (m *dryRunMode) String() string { return string(*m) }

// Type implements [pflag.Value].
func (m *dryRunMode) Type() string { return "string" }

// Set implements [pflag.Value].
func (m *dryRunMode) Set(word string) error {
	if !slices.Contains([]dryRunMode{dryRunNone, dryRunClient, dryRunServer}, dryRunMode(word)) {
		return formError(fmt.Sprintf("%q is not known; use %s", word, m.choices()))
	}
	*m = dryRunMode(word)
	return nil
}

func (m *dryRunMode) choices() string { return "none, client or server" }

// On is true if nothing is stored.
func (d *DryRun) On() bool { return d.IsClient() || d.mode == dryRunServer }

// IsClient is true if no write is sent.
func (d *DryRun) IsClient() bool { return d.mode == dryRunClient }

// Note follows what is said to be done: that it was not.
func (d *DryRun) Note() string {
	if !d.On() {
		return ""
	}
	return fmt.Sprintf(" (%s dry run)", d.mode)
}

// Client returns a client whose writes are sent, are sent to be checked, or are not sent. An
// object that is not sent stays as it is given. Reads are those of the cluster.
func (d *DryRun) Client(c client.WithWatch) client.WithWatch {
	switch d.mode {
	case dryRunClient:
		return interceptor.NewClient(c, unsent())
	case dryRunServer:
		return unstored{Client: client.NewDryRunClient(c), cluster: c}
	default:
		return c
	}
}

func unsent() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			if _, asks := obj.(*authenticationv1.SelfSubjectReview); asks { // nothing is stored
				return c.Create(ctx, obj, o...)
			}
			return nil
		},
		Update:      func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return nil },
		Delete:      func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return nil },
		DeleteAllOf: func(context.Context, client.WithWatch, client.Object, ...client.DeleteAllOfOption) error { return nil },
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return nil
		},
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return nil
		},
		SubResourceCreate: func(context.Context, client.Client, string, client.Object, client.Object, ...client.SubResourceCreateOption) error {
			return nil
		},
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			return nil
		},
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return nil
		},
		SubResourceApply: func(context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
			return nil
		},
	}
}

// unstored is a client whose writes the API server checks and does not store.
type unstored struct {
	client.Client // of the dry run

	cluster client.WithWatch
}

// Watch implements [client.WithWatch].
func (u unstored) Watch(ctx context.Context, list client.ObjectList, o ...client.ListOption) (watch.Interface, error) {
	return u.cluster.Watch(ctx, list, o...) //nolint:wrapcheck // it is the same client
}

// PackageHelp says how packages are named.
const PackageHelp = "name a package: a directory, an archive (.tgz), a URL, oci://REGISTRY/NAME:TAG, or its name in a repository"

// Packages are the flags that say where the package is that is named.
type Packages struct {
	Home KUDOHome
	from origin.Origin
}

// AddFlags adds the flags.
func (p *Packages) AddFlags(flags *pflag.FlagSet) {
	p.Home.AddFlag(flags)
	p.AddRepositoryFlag(flags)
	flags.StringVar(&p.from.OperatorVersion, "operator-version", "", "version of a package of a repository (default: the latest)")
	flags.StringVar(&p.from.AppVersion, "app-version", "", "version of the application of a package of a repository (default: the latest)")
	p.AddPlainHTTPFlag(flags)
}

// AddRepositoryFlag adds the flag that names a repository.
func (p *Packages) AddRepositoryFlag(flags *pflag.FlagSet) {
	flags.StringVar(&p.from.Repository, "repo", "", "name of the repository (default: that of its context)")
}

// AddPlainHTTPFlag adds the flag for registries without TLS.
func (p *Packages) AddPlainHTTPFlag(flags *pflag.FlagSet) {
	flags.BoolVar(&p.from.PlainHTTP, "plain-http", false, "connect to registries (oci://) without TLS; those on this machine are always")
}

// Origin is where packages are, as the flags say.
func (p *Packages) Origin(env Environment) *origin.Origin {
	from := p.from
	from.Home, from.OnlyPaths = p.Home.Dir(env.Lookup), env.KUDO
	return &from
}

// Load reads the package that is named.
func (p *Packages) Load(ctx context.Context, env Environment, name string) (*packages.Package, error) {
	return p.Origin(env).Load(ctx, name)
}

// KUDOHome is the directory with the list of repositories, which KUDO has as well.
type KUDOHome string

// AddFlag adds the flag that names it.
func (h *KUDOHome) AddFlag(flags *pflag.FlagSet) {
	flags.StringVar((*string)(h), "home", "", "directory with the list of repositories (default: $KUDO_HOME or ~/.kudo)")
}

// Dir is the directory.
func (h *KUDOHome) Dir(lookup func(string) (string, bool)) string {
	if *h != "" {
		return string(*h)
	}
	if dir, ok := lookup("KUDO_HOME"); ok && dir != "" {
		return dir
	}
	home, _ := lookup("HOME") // without one, it is a directory that does not exist
	return filepath.Join(home, ".kudo")
}

// otherFlags are, by command, the flags that other commands have, and what to use for them.
var otherFlags = map[string]map[string]string{
	"status": {"watch": noWatch, "w": noWatch},
	"explain": {
		"all-namespaces": noAll, "A": noAll,
		"filename": noFile, "f": noFile,
	},
}

// What to use for a flag of another command.
const (
	noWatch = "status does not continue; use spillway watch"
	noAll   = "explain shows one object; use spillway status -A"
	noFile  = "explain reads no files; use spillway lint -f FILE or spillway simulate -f FILE"
)

// FlagError says what is wrong with a flag, and what it takes instead.
func FlagError(cmd *cobra.Command, err error) error {
	help := fmt.Sprintf("(see %s --help)", cmd.CommandPath())
	var (
		invalid *pflag.InvalidValueError
		missing *pflag.NotExistError
		empty   *pflag.ValueRequiredError
	)
	switch {
	case errors.As(err, &invalid):
		return fmt.Errorf("--%s: %s %s", invalid.GetFlag().Name, valueError(invalid.GetFlag(), invalid.GetValue(), err), help)
	case errors.As(err, &missing) && otherFlags[cmd.Name()][missing.GetSpecifiedName()] != "":
		return fmt.Errorf("unknown flag: %s %s", otherFlags[cmd.Name()][missing.GetSpecifiedName()], help)
	case errors.As(err, &empty) && empty.GetSpecifiedShortnames() != "":
		return fmt.Errorf("-%s: it needs a value%s %s", empty.GetSpecifiedName(), choices(empty.GetFlag()), help)
	case errors.As(err, &empty):
		return fmt.Errorf("--%s: it needs a value%s %s", empty.GetSpecifiedName(), choices(empty.GetFlag()), help)
	case errors.As(err, &missing) && missing.GetSpecifiedShortnames() != "":
		return fmt.Errorf("unknown flag: -%s %s", missing.GetSpecifiedName(), help)
	case errors.As(err, &missing):
		if near := nearest.Meant(missing.GetSpecifiedName(), names(cmd.Flags())); near != "" {
			return fmt.Errorf("%w; did you mean --%s? %s", err, near, help)
		}
	}
	return fmt.Errorf("%w %s", err, help)
}

// valueError says what a value should have been, as its flag does or by the type of that.
func valueError(f *pflag.Flag, value string, err error) string {
	form, isForm := errors.AsType[formError](err)
	switch t := f.Value.Type(); {
	case isForm:
		return form.Error()
	case t == "duration":
		return notDuration(value)
	case t == versionType:
		return notVersion(value)
	case strings.HasPrefix(t, "int"), strings.HasPrefix(t, "uint"):
		return fmt.Sprintf(`%q is not a whole number; use one such as %s`, value, numberLike(f))
	case strings.HasPrefix(t, "float"):
		return fmt.Sprintf(`%q is not a number; use one such as 0.5`, value)
	case t == "bool":
		return fmt.Sprintf(`%q is neither true nor false`, value)
	default:
		return fmt.Sprintf(`%q is not a value of type %s`, value, t)
	}
}

// numberLike is an example of a whole number for a flag. A flag whose default is a number that
// does something has that, so that no port is 3.
func numberLike(f *pflag.Flag) string {
	if usual, err := strconv.Atoi(f.DefValue); err == nil && usual > 0 {
		return f.DefValue
	}
	return "3"
}

// choices ends what is said of a flag without its value: the words that it has, if it has few.
func choices(f *pflag.Flag) string {
	if few, ok := f.Value.(interface{ choices() string }); ok {
		return "; use " + few.choices()
	}
	return ""
}

func notDuration(value string) string {
	if days, err := strconv.Atoi(strings.TrimSuffix(value, "d")); err == nil && strings.HasSuffix(value, "d") {
		return fmt.Sprintf(`%q is not a duration: there is no unit for days; write %dh`, value, days*24)
	}
	return fmt.Sprintf(`%q is not a duration; use a number with a unit, such as 10s, 5m or 1h`, value)
}

// names are those of the flags that help shows.
func names(flags *pflag.FlagSet) []string {
	var names []string
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// Values are those of a flag that was given, one unless it may be given several times.
func Values(f *pflag.Flag) []string {
	if several, ok := f.Value.(pflag.SliceValue); ok {
		return several.GetSlice()
	}
	return []string{f.Value.String()}
}
