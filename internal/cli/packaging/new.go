package packaging

import (
	"cmp"
	"fmt"
	"net/mail"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/packages/authoring"
	"github.com/spillway-dev/spillway/internal/packages/origin"
)

func newNew() *cobra.Command {
	var (
		dir, chart             string
		interactive, overwrite bool
	)
	cmd := &cobra.Command{
		Use: "new NAME", Short: "Write a new package to begin with",
		Long: "Write a new package that can be installed as it is: a Deployment, two parameters, and the\n" +
			"plans deploy and update. Then change it, or add to it with: spillway package add. With\n" +
			"--interactive, what the package says of itself is asked for, and the name may be left out.\n" +
			"\n" +
			"With --from-chart, the package installs a Helm chart: its values are the parameters, and its\n" +
			"hooks are steps of the plans. The name is that of the chart, unless one is given.",
		Example: "  spillway package new shop\n" +
			"  spillway package new shop --interactive\n" +
			"  spillway package new --from-chart oci://registry.example.com/charts/shop:1.2.0\n" +
			"  spillway package add parameter ./shop COLOR --default blue",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkNew(cmd, args, interactive || chart != ""); err != nil {
				return err
			}
			if chart != "" {
				archive, err := (&origin.Origin{}).Chart(cmd.Context(), chart)
				if err != nil {
					return err
				}
				return writeFiles(cmd)(authoring.NewFromChart(dir, strings.Join(args, ""), archive, overwrite))
			}
			d := authoring.Default(strings.Join(args, ""))
			if interactive {
				ask := newInterview(cmd)
				if err := ask.describe(&d, &dir); err != nil {
					return err
				}
			}
			return writeFiles(cmd)(authoring.New(cmp.Or(dir, d.Name), &d, overwrite))
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the directory to create (default: the name)")
	cmd.Flags().StringVar(&chart, "from-chart", "", "the Helm chart to install: a directory, an archive (.tgz), a URL or oci://REGISTRY/NAME:VERSION")
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "replace the files of a package that exists; other files of it stay")
	cmd.Flags().BoolVarP(&interactive, "interactive", "i", false, "ask for the directory, the versions, the address and the maintainer")
	cmd.MarkFlagsMutuallyExclusive("from-chart", "interactive")
	return cmd
}

// writeFiles names the files that were written.
func writeFiles(cmd *cobra.Command) func([]string, error) error {
	return func(written []string, err error) error {
		for _, file := range written {
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s written\n", file)
		}
		return err
	}
}

// checkNew refuses a number of arguments that is wrong.
func checkNew(cmd *cobra.Command, args []string, mayLeaveOut bool) error {
	if mayLeaveOut {
		return command.AtMost(1, "name the package, or leave it out")(cmd, args)
	}
	return command.Exactly(1, "name the package, as in: spillway package new shop; or add --interactive")(cmd, args)
}

// describe asks for what a package says of itself, and for its directory.
func (i *interview) describe(d *authoring.Description, dir *string) error {
	maintainer := v1beta1.Maintainer{}
	for _, q := range []struct {
		text  string
		value *string
		check func(string) error
	}{
		{"Name of the package", &d.Name, authoring.CheckName},
		{"Directory", dir, nil},
		{"Version of the package", &d.OperatorVersion, authoring.CheckVersion},
		{"Version of the application", &d.AppVersion, nil},
		{"Address of the project", &d.URL, isURL},
		{"Name of the maintainer", &maintainer.Name, nil},
		{"Email of the maintainer", &maintainer.Email, isEmail},
	} {
		if q.value == dir {
			*dir = cmp.Or(*dir, d.Name)
		}
		if q.value == &maintainer.Email && maintainer.Name == "" {
			continue
		}
		if err := i.ask(q.text, q.value, q.check); err != nil {
			return err
		}
	}
	if maintainer.Name != "" {
		d.Maintainers = []v1beta1.Maintainer{maintainer}
	}
	return nil
}

func isURL(text string) error {
	if u, err := url.Parse(text); text != "" && (err != nil || u.Scheme == "" || u.Host == "") {
		return fmt.Errorf("%q is no URL; write it as https://example.com/shop, or leave it out", text)
	}
	return nil
}

func isEmail(text string) error {
	if _, err := mail.ParseAddress(text); text != "" && err != nil {
		return fmt.Errorf("%q is no email address; write it as ada@example.com, or leave it out", text)
	}
	return nil
}
