package content

import "testing"

// Contents of two objects are compared with each other, and with what is recorded of the other one.
func TestContentsAreComparedWithoutTheirObjects(t *testing.T) {
	one, other := Object{Secret, "dev", "db"}, Object{Secret, "shop", "db"}
	of := func(uid string, digests map[string]string) fact {
		return fact{exists: true, uid: uid, digests: digests}
	}
	dev := Facts{one: of("u", map[string]string{"p": "1", "q": "2"})}
	for name, test := range map[string]struct {
		fact
		equal bool
	}{
		"equal":             {of("v", map[string]string{"q": "2", "p": "1"}), true},
		"another value":     {of("v", map[string]string{"q": "2", "p": "2"}), false},
		"a key more":        {of("v", map[string]string{"q": "2", "p": "1", "r": ""}), false},
		"it does not exist": {fact{}, false},
	} {
		shop := Facts{other: test.fact}
		recorded, _ := dev.DigestOf(one)
		if got := dev.ContentOf(one) == shop.ContentOf(other); got != test.equal {
			t.Errorf("%s: equal is %t", name, got)
		}
		if got := shop.DigestAt(other, dev, one) == recorded; got != test.equal {
			t.Errorf("%s: as recorded is %t", name, got)
		}
		if is, _ := shop.DigestOf(other); is == recorded {
			t.Errorf("%s: the digest says it without its object", name)
		}
	}
	if gone := (Facts{}); gone.ContentOf(one) != gone.ContentOf(other) || gone.DigestAt(one, gone, other) != absent {
		t.Error("objects that do not exist differ")
	}
}
