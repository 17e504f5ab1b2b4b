package content

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// waveHash computes wave's hash from its description alone,
// with nothing of ours: keys sorted, values in base64, no white space.
func waveHash(configMaps, secrets map[string]map[string]string) string {
	doc := `{"configMaps":` + jsonOf(configMaps) + `,"secrets":` + jsonOf(secrets) + `}`
	sum := sha256.Sum256([]byte(doc))
	return hex.EncodeToString(sum[:])
}

func jsonOf(objects map[string]map[string]string) string {
	entries := make([]string, 0, len(objects))
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		pairs := make([]string, 0, len(objects[name]))
		for _, key := range slices.Sorted(maps.Keys(objects[name])) {
			value := base64.StdEncoding.EncodeToString([]byte(objects[name][key]))
			pairs = append(pairs, fmt.Sprintf(`"%s":"%s"`, key, value))
		}
		entries = append(entries, fmt.Sprintf(`"%s":{%s}`, name, strings.Join(pairs, ",")))
	}
	return "{" + strings.Join(entries, ",") + "}"
}

func object(kind Kind, name string) Object { return Object{Kind: kind, Namespace: "shop", Name: name} }

func whole(o Object) Reference { return Reference{Object: o, Required: true} }

func keyed(o Object, names ...string) Reference {
	ref := Reference{Object: o, Keys: []KeyUse{}}
	for _, name := range names {
		ref.Keys = append(ref.Keys, KeyUse{Name: name})
	}
	return ref
}

func bytesOf(values map[string]string) map[string][]byte {
	raw := map[string][]byte{}
	for key, value := range values {
		raw[key] = []byte(value)
	}
	return raw
}

func hashOf(t testing.TB, s scope, c contents, h hollow) string {
	t.Helper()
	got, err := s.hash(c, h)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestHashVectors(t *testing.T) {
	x, s := object(ConfigMap, "x"), object(Secret, "s")
	for name, test := range map[string]struct {
		refs []Reference
		want string
	}{
		"nothing referenced": {nil, "100444e91862dd77d7ebe29f050c1e9a7f357c771e1a7b7650aae27e6a3a031d"},
		"text, empty and binary": {
			[]Reference{whole(x), whole(s)},
			"098e9e224a974a12acf910a06916ccf3b5f6fb80b00008884c28e092b83351db",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := contents{
				x: bytesOf(map[string]string{"k": "v", "e": "", "b": "\x00\xff"}),
				s: bytesOf(map[string]string{"p": "q"}),
			}
			if got := hashOf(t, scope{namespace: "shop", refs: test.refs}, c, hollowAsFound); got != test.want {
				t.Errorf("hash = %s, want %s", got, test.want)
			}
		})
	}
}

func TestHashOfEveryKindOfReference(t *testing.T) {
	app, db := object(ConfigMap, "app"), object(Secret, "db")
	c := contents{
		app: bytesOf(map[string]string{"A": "1", "B": "2", "C": "3"}),
		db:  bytesOf(map[string]string{"user": "u", "password": "p"}),
	}
	type objects = map[string]map[string]string
	for name, test := range map[string]struct {
		refs                []Reference
		configMaps, secrets objects
	}{
		"several references to one object are one entry": {
			[]Reference{keyed(app, "A"), keyed(app, "C"), keyed(db, "user")},
			objects{"app": {"A": "1", "C": "3"}}, objects{"db": {"user": "u"}},
		},
		"a whole object covers its keys":                  {[]Reference{keyed(app, "A"), whole(app)}, objects{"app": {"A": "1", "B": "2", "C": "3"}}, objects{}},
		"an object that does not exist has no entry":      {[]Reference{whole(object(ConfigMap, "none")), keyed(db, "user")}, objects{}, objects{"db": {"user": "u"}}},
		"an object without the wanted key is empty":       {[]Reference{keyed(app, "Z")}, objects{"app": {}}, objects{}},
		"a key that is missing does not hide its sibling": {[]Reference{keyed(app, "Z", "B")}, objects{"app": {"B": "2"}}, objects{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := hashOf(t, scope{namespace: "shop", refs: test.refs}, c, hollowAsFound)
			if want := waveHash(test.configMaps, test.secrets); got != want {
				t.Errorf("hash = %s, want %s", got, want)
			}
		})
	}
}

func TestHashEqualsWavesForAnyContents(t *testing.T) {
	names := rapid.StringMatching(`[a-z][a-z0-9-]{0,8}`)
	keys := rapid.StringMatching(`[-._a-zA-Z0-9]{1,12}`)
	values := rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 40), func(b []byte) string { return string(b) })
	objects := rapid.MapOfN(names, rapid.MapOfN(keys, values, 0, 6), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		configMaps, secrets := objects.Draw(t, "configMaps"), objects.Draw(t, "secrets")
		s, c := scope{namespace: "shop"}, contents{}
		for kind, of := range map[Kind]map[string]map[string]string{ConfigMap: configMaps, Secret: secrets} {
			for name, values := range of {
				c[object(kind, name)] = bytesOf(values)
				s.refs = append(s.refs, whole(object(kind, name)))
			}
		}
		got, err := s.hash(c, hollowAsFound)
		if want := waveHash(configMaps, secrets); err != nil || got != want {
			t.Fatalf("hash = %s, %v, want %s", got, err, want)
		}
	})
}

// Defect 6 of wave: a change of one of two objects of one name in
// two namespaces was masked by the other.
func TestNamesakesOfTwoNamespacesDoNotMaskOneAnother(t *testing.T) {
	home := object(ConfigMap, "app")
	other := Object{Kind: ConfigMap, Namespace: "shared", Name: "app"}
	refs := []Reference{whole(home), {Object: other, Extra: true}}
	with := func(a, b string) contents {
		return contents{home: bytesOf(map[string]string{"k": a}), other: bytesOf(map[string]string{"k": b})}
	}
	s := scope{namespace: "shop", refs: refs}
	first := hashOf(t, s, with("1", "1"), hollowAsFound)
	for name, c := range map[string]contents{"home": with("2", "1"), "other": with("1", "2")} {
		if hashOf(t, s, c, hollowAsFound) == first {
			t.Errorf("a change of the %s object does not show", name)
		}
	}
	merged := scope{namespace: "shop", refs: refs, merged: true}
	if got, want := hashOf(t, merged, with("1", "2"), hollowAsFound), waveHash(map[string]map[string]string{"app": {"k": "2"}}, nil); got != want {
		t.Errorf("wave's hash = %s, want %s", got, want)
	}
}

// An object of another namespace whose name is not ambiguous hashes as in wave.
func TestExtraObjectAloneIsHashedByItsName(t *testing.T) {
	other := Object{Kind: Secret, Namespace: "vault", Name: "ca"}
	s := scope{namespace: "shop", refs: []Reference{{Object: other, Extra: true}}}
	got := hashOf(t, s, contents{other: bytesOf(map[string]string{"crt": "x"})}, hollowAsFound)
	if want := waveHash(nil, map[string]map[string]string{"ca": {"crt": "x"}}); got != want {
		t.Errorf("hash = %s, want %s", got, want)
	}
}

// Defect 10: an optional object that appears without the wanted key changed the hash.
func TestAReferenceWithoutValuesIsTheSameToThePods(t *testing.T) {
	app := object(ConfigMap, "app")
	w := scopes{own: scope{namespace: "shop", refs: []Reference{keyed(app, "A")}}}
	absent, err := w.hash(contents{})
	if err != nil {
		t.Fatal(err)
	}
	present, err := w.hash(contents{app: bytesOf(map[string]string{"other": "1"})})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(present.Equivalent, absent.Desired) {
		t.Errorf("absent %s is not among %v", absent.Desired, present.Equivalent)
	}
	if !slices.Contains(absent.Equivalent, present.Desired) {
		t.Errorf("present %s is not among %v", present.Desired, absent.Equivalent)
	}
}

func TestIgnoredObjectsAndKeysDoNotCount(t *testing.T) {
	app, db := object(ConfigMap, "app"), object(Secret, "db")
	s := scope{
		namespace: "shop", refs: []Reference{whole(app), whole(db)},
		ignored: []Reference{{Object: db}, {Object: app, Keys: []KeyUse{{Name: "noise"}}}},
	}
	c := contents{app: bytesOf(map[string]string{"A": "1", "noise": "x"}), db: bytesOf(map[string]string{"p": "q"})}
	if got, want := hashOf(t, s, c, hollowAsFound), waveHash(map[string]map[string]string{"app": {"A": "1"}}, nil); got != want {
		t.Errorf("hash = %s, want %s", got, want)
	}
}
