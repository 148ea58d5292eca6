package redisstore_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/callfan/callfan/pkg/results/redisstore"
)

func TestMain(m *testing.M) {
	redisstore.SilenceClient()
	goleak.VerifyTestMain(m)
}
