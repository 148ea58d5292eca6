package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// contract names the tests that prove each row of the README's table, by the row's first cell. Each name goes on after
// TestContract_.
var contract = map[string][]string{
	"a handler returns an error":                           {"HandlerReturnsAnError"},
	"a handler reports a technical failure":                {"TechnicalFailureIsRetried", "RetriesOutliveTheDispatcher", "OutOfAttempts", "HealthyCallsPassFailingOnes"},
	"a handler panics":                                     {"HandlerPanics"},
	"an executor exits in a call":                          {"ExecutorExits", "FunctionKillsItsExecutors"},
	"an executor's host is lost in a call":                 {"ExecutorIsLost", "UncertainCallIsVerified", "LostAfterItsOutcome", "ParkedCallIsDecidedByAnOperator"},
	"a handler is too slow":                                {"HandlerIsTooSlow"},
	"a result comes after its call was answered":           {"LateResultIsKeptAsEvidence"},
	"no executor for the function, or none takes the call": {"UnknownFunctionIsAnswered", "CallWaitsForItsExecutor", "NobodyTakesTheCall"},
	"bad arguments, impossible name":                       {"BadArguments", "ImpossibleName", "FunctionNamesAreFreeText"},
	"a dispatcher is killed at any instant":                {"DispatcherIsKilledInTheMiddleOfATurn", "ReplicasShareAndTakeOver"},
	"NATS is lost or restarted":                            {"ServersLostForAWhile", "NATSRestartsBeforeTheDelivery", "ReadinessFollowsTheServers"},
	"Redis is lost for a while":                            {"ServersLostForAWhile", "ReadinessFollowsTheServers"},
	"Redis loses its data (FLUSHALL)":                      {"RedisLosesItsData", "RedisLosesItsDataAtAnyInstant"},
	"API 429, 5xx, time-out, lost 202":                     {"FaultsOfTheAPI", "RetryAfterIsHonoured"},
	"API refuses one result of a batch":                    {"OneRefusedResultDoesNotHoldUpTheOthers"},
	"API 401, 403":                                         {"KeyIsRefused"},
	"the turn is cancelled, the session fails or is deleted": {
		"TurnIsCancelled", "CancelledInTheQueue", "CancelledWhileItWaitsForItsNextAttempt", "CancelledWhileItIsVerified", "CancelledWhileItIsParked",
		"SessionFails", "SessionIsDeleted", "SessionIsDeletedInACall",
	},
	"a result is too large (4 MiB or NATS's limit)": {"ResultsAtTheLimits"},
}

// TestEachRowOfTheContractIsProved compares the README's table with the tests.
func TestEachRowOfTheContractIsProved(t *testing.T) {
	t.Parallel()
	rows := contractRows(t)
	tests := contractTests(t)
	for _, row := range rows {
		if len(contract[row]) == 0 {
			t.Errorf("the README's row %q has no test; remedy: write one and name it in contract", row)
		}
	}
	named := map[string]bool{}
	for _, row := range slices.Sorted(maps.Keys(contract)) {
		if !slices.Contains(rows, row) {
			t.Errorf("contract has a row %q, and the README's table has none; its rows are %q", row, rows)
		}
		for _, name := range contract[row] {
			named[name] = true
			if !tests[name] {
				t.Errorf("the row %q names TestContract_%s, which does not exist", row, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		if !named[name] {
			t.Errorf("TestContract_%s proves no row; remedy: add it to its row in contract", name)
		}
	}
}

// contractRows are the first cells of the README's table.
func contractRows(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| what fails |")
	require.True(t, found, "the README has no table that begins with what fails")
	table, _, _ = strings.Cut(table, "\n\n")
	require.NotContains(t, strings.ToLower(table), "not yet", "the contract promises what is built")
	var rows []string
	for _, line := range strings.Split(table, "\n")[2:] {
		rows = append(rows, strings.TrimSpace(strings.Split(line, "|")[1]))
	}
	require.NotEmpty(t, rows)
	return rows
}

// contractTests are the names of this package's contract tests.
func contractTests(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	declared := regexp.MustCompile(`(?m)^func TestContract_(\w+)\(`)
	names := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range declared.FindAllStringSubmatch(string(text), -1) {
			names[match[1]] = true
		}
	}
	require.NotEmpty(t, names)
	return names
}
