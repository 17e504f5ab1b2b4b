package testenv

import "testing"

func TestMain(m *testing.M) { Main(m, Options{Nodes: 3}) }

func TestStarts(t *testing.T) { _ = Namespace(t) }
