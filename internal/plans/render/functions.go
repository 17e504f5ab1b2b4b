package render

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
)

// allowed are the functions of sprig that always give the same result.
const allowed = `
abbrev abbrevboth trunc trim upper lower title untitle substr trimall trimAll trimSuffix trimPrefix nospace initials
swapcase snakecase camelcase kebabcase wrap wrapWith contains hasPrefix hasSuffix quote squote cat plural
sha1sum sha256sum sha512sum adler32sum toString atoi int64 int float64 toDecimal split splitList splitn toStrings
add1 add sub div mod mul add1f addf subf divf mulf biggest max min maxf minf ceil floor round
join sortAlpha default empty coalesce all any compact mustCompact fromJson toJson toPrettyJson toRawJson mustFromJson
mustToJson mustToPrettyJson mustToRawJson ternary deepCopy mustDeepCopy typeOf typeIs typeIsLike kindOf kindIs deepEqual
b64enc b64dec b32enc b32dec tuple list dict get set unset hasKey pluck pick omit merge mergeOverwrite mustMerge
mustMergeOverwrite append push mustAppend mustPush prepend mustPrepend first mustFirst rest mustRest last mustLast
initial mustInitial reverse mustReverse uniq mustUniq without mustWithout has mustHas slice mustSlice concat dig chunk
mustChunk derivePassword buildCustomCert decryptAES semver semverCompare fail duration hello
regexMatch mustRegexMatch regexFindAll mustRegexFindAll regexFind mustRegexFind regexReplaceAll mustRegexReplaceAll
regexReplaceAllLiteral mustRegexReplaceAllLiteral regexSplit mustRegexSplit regexQuoteMeta urlParse urlJoin`

// aboutFiles is what is wrong with functions of paths.
const aboutFiles = "it is about the file system of the manager"

// refused are the others, by what is wrong with them.
var refused = map[string]string{ //nolint:gosec // names of functions, no credentials
	"its result is different each time; for a password, use the annotation spillway.dev/generate-once on a Secret": `
randAlphaNum randAlpha randAscii randNumeric randInt randBytes shuffle uuidv4 bcrypt htpasswd encryptAES
genPrivateKey genCA genCAWithKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey`,
	"its result depends on the time or the time zone": `
now ago date date_in_zone date_modify dateInZone dateModify durationRound htmlDate htmlDateInZone must_date_modify
mustDateModify mustToDate toDate unixEpoch`,
	"it reads the environment of the manager": "env expandenv",
	"it asks the network":                     "getHostByName",
	aboutFiles: `
base dir clean ext isAbs osBase osClean osDir osExt osIsAbs`,
}

// refusals says why a function is refused, by its name.
var refusals = sync.OnceValue(func() map[string]string {
	why := map[string]string{}
	for reason, names := range refused {
		for name := range strings.FieldsSeq(names) {
			why[name] = reason
		}
	}
	return why
})

// functions are all that a template may name.
var functions = sync.OnceValue(func() template.FuncMap {
	all, known := template.FuncMap{}, sprig.TxtFuncMap()
	for name := range strings.FieldsSeq(allowed) {
		all[name] = known[name]
	}
	maps.Copy(all, template.FuncMap{
		"toYaml": toYAML, "keys": keys, "values": values, "repeat": repeat, "indent": indent, "nindent": nindent,
		"replace": replace, "until": until, "untilStep": untilStep, "seq": seq,
	})
	return all
})

func refusal(name string) error {
	return fmt.Errorf("function %q is refused: %s", name, refusals()[name])
}

func toYAML(v any) (string, error) {
	out, err := yaml.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("toYaml: %w", err)
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// keys are those of maps, sorted; sprig gives them in an order of chance.
func keys(dicts ...map[string]any) []string {
	var all []string
	for _, d := range dicts {
		all = append(all, slices.Sorted(maps.Keys(d))...)
	}
	return all
}

// values are those of a map, in the order of their keys.
func values(dict map[string]any) []any {
	var all []any
	for _, k := range slices.Sorted(maps.Keys(dict)) {
		all = append(all, dict[k])
	}
	return all
}

func repeat(count int, s string) (string, error) {
	if count < 0 || len(s) > 0 && count > maxOutput/len(s) {
		return "", fmt.Errorf("repeat: the result of %d times is too long", count)
	}
	return strings.Repeat(s, count), nil
}

func nindent(spaces int, s string) (string, error) {
	s, err := indent(spaces, s)
	return "\n" + s, err
}

func indent(spaces int, s string) (string, error) {
	if spaces < 0 || spaces > maxIndent {
		return "", fmt.Errorf("indent: %d spaces are not between 0 and %d", spaces, maxIndent)
	}
	if len(s)+spaces*strings.Count(s, "\n") > maxOutput {
		return "", errors.New("indent: the result is too long")
	}
	pad := strings.Repeat(" ", spaces)
	return pad + strings.ReplaceAll(s, "\n", "\n"+pad), nil
}

// replace is that of sprig: the text comes last.
func replace(old, replacement, s string) (string, error) {
	if len(s)+(len(replacement)-len(old))*strings.Count(s, old) > maxOutput {
		return "", errors.New("replace: the result is too long")
	}
	return strings.ReplaceAll(s, old, replacement), nil
}

func until(count int) ([]int, error) {
	if count < 0 {
		return untilStep(0, count, -1)
	}
	return untilStep(0, count, 1)
}

// seq is like the command of that name: seq LAST, seq FIRST LAST, seq FIRST STEP LAST.
func seq(args ...int) (string, error) {
	first, step, last := 1, 1, 0
	switch len(args) {
	case 0:
	case 1:
		last = args[0]
	case 2:
		first, last = args[0], args[1]
	default:
		first, step, last = args[0], args[1], args[2]
	}
	if len(args) > 0 && len(args) < 3 && last < first {
		step = -1
	}
	stop := last + 1
	if step < 0 {
		stop = last - 1
	}
	numbers, err := untilStep(first, stop, step)
	return strings.Trim(fmt.Sprint(numbers), "[]"), err
}

func untilStep(start, stop, step int) ([]int, error) {
	if step == 0 || (stop > start) != (step > 0) {
		return []int{}, nil
	}
	if (float64(stop)-float64(start))/float64(step) > maxRange {
		return nil, fmt.Errorf("a range from %d to %d is longer than %d", start, stop, maxRange)
	}
	var numbers []int
	for i := start; (step > 0 && i < stop) || (step < 0 && i > stop); i += step {
		numbers = append(numbers, i)
	}
	return numbers, nil
}
