package storetest

import "testing"

func testModel(*testing.T, backend) {}
