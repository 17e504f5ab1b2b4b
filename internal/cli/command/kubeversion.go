package command

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/spillway-dev/spillway/internal/plans/object"
)

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

// String implements [pflag.Value].
func (v *KubeVersion) String() string { return "1." + strconv.Itoa(v.Minor) }

// Type implements [pflag.Value].
func (v *KubeVersion) Type() string { return versionType }

const versionType = "version"

func notVersion(value string) string {
	return fmt.Sprintf("%q is no version of Kubernetes; use one such as 1.%d", value, object.Latest)
}
