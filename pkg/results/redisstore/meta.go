package redisstore

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/internal/history"
)

// A call's entry in its turn's hash is one compact text:
//
//	STATE ATTEMPT "." HANDOVER "." CLAIMED "." CHANGED "." LENGTH "." FUNCTION OUTCOME HISTORY
//
// STATE is one letter, CLAIMED the milliseconds of the claim by the server's
// clock, CHANGED the milliseconds from there to the last change, LENGTH the
// length of FUNCTION, OUTCOME the id of the saved outcome. FUNCTION and OUTCOME are
// written without line breaks; see onOneLine. HISTORY is the steps of the call,
// each on a line of its own; see package history. Entries of versions that kept no
// history have none, or only the steps since.
// The scripts read it with the same grammar; see luaMeta.

var letters = history.Letters

var oneLine, anyLines = strings.NewReplacer(`\`, `\\`, "\n", `\n`), strings.NewReplacer(`\\`, `\`, `\n`, "\n")

// onOneLine writes a text without line breaks; asItWas reads it.
func onOneLine(text string) string { return oneLine.Replace(text) }

func asItWas(text string) string { return anyLines.Replace(text) }

var errMalformed = errors.New("a call's entry in Redis is malformed")

// parseMeta reads an entry; now is the server's clock in milliseconds.
func parseMeta(key call.Key, meta string, now int64) (results.Record, error) {
	bad := func() (results.Record, error) { return results.Record{}, fmt.Errorf("%w: %s", errMalformed, key) }
	steps := ""
	if at := strings.IndexByte(meta, '\n'); at >= 0 {
		meta, steps = meta[:at], meta[at:]
	}
	if meta == "" {
		return bad()
	}
	state, ok := history.States[meta[:1]]
	parts := strings.SplitN(meta[1:], ".", 6)
	if !ok || len(parts) != 6 {
		return bad()
	}
	var numbers [5]int64
	for i := range numbers {
		n, err := strconv.ParseInt(parts[i], 10, 64)
		if err != nil {
			return bad()
		}
		numbers[i] = n
	}
	claimed, changed, length, rest := numbers[2], numbers[3], numbers[4], parts[5]
	if length < 0 || length > int64(len(rest)) {
		return bad()
	}
	return results.Record{
		Key:       key,
		Function:  asItWas(rest[:length]),
		State:     state,
		Attempt:   int(numbers[0]),
		Handover:  int(numbers[1]),
		ClaimedAt: time.UnixMilli(claimed),
		OutcomeID: asItWas(rest[length:]),
		History:   history.Parse(steps, time.UnixMilli(claimed)),
		Age:       max(0, time.Duration(now-claimed)*time.Millisecond),
		Since:     max(0, time.Duration(now-claimed-changed)*time.Millisecond),
	}, nil
}
