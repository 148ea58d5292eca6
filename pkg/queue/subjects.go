package queue

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/callfan/callfan/pkg/call"
)

var (
	validPrefix = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)
	// ValidPool is what a pool may be called: the name becomes part of a consumer's
	// name and of permissions.
	validPool = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

// names derives every subject, stream and consumer of an installation from its
// prefix. Nothing else in the package puts a subject together.
type names struct{ prefix string }

func (n names) call(token string) string     { return n.prefix + ".call." + token }
func (n names) dead(token string) string     { return n.prefix + ".dead." + token }
func (n names) register(token string) string { return n.prefix + ".register." + token }
func (n names) outcome(token string) string  { return n.prefix + ".outcome." + token }
func (n names) cancel(token string) string   { return n.prefix + ".cancel." + token }
func (n names) nudge() string                { return n.prefix + ".nudge" }

func (n names) result(token string, partition int) string {
	return n.prefix + ".result." + token + "." + partitionToken(partition)
}

func (n names) calls() string    { return n.stream("CALLS") }
func (n names) results() string  { return n.stream("RESULTS") }
func (n names) deads() string    { return n.stream("DEAD") }
func (n names) advisory() string { return n.stream("ADVISORY") }

// bucket is the KV bucket of the registry and the installation's settings.
func (n names) bucket() string { return n.stream("STATE") }

func (n names) stream(suffix string) string { return strings.ToUpper(n.prefix) + "_" + suffix }

func poolDurable(pool string) string      { return "pool_" + pool }
func resultDurable(partition int) string  { return "res_" + partitionToken(partition) }
func partitionToken(partition int) string { return fmt.Sprintf("p%02d", partition) }
func parsePartition(token string) (int, bool) {
	digits, ok := strings.CutPrefix(token, "p")
	if !ok || len(digits) < 2 || len(digits) > 5 {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 0 && partitionToken(n) == token
}

// parseResult reads <prefix>.result.<token>.p<NN>.
func (n names) parseResult(subject string) (token string, partition int, ok bool) {
	rest, found := strings.CutPrefix(subject, n.prefix+".result.")
	if !found {
		return "", 0, false
	}
	token, last, found := strings.Cut(rest, ".")
	if !found || token == "" {
		return "", 0, false
	}
	partition, ok = parsePartition(last)
	return token, partition, ok
}

// lastToken is the function's token in a subject whose last part it is.
func lastToken(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }

func functionToken(function string) (string, error) {
	token := call.Token(function)
	if token == "" {
		return "", fmt.Errorf("%w: the name is empty", ErrInvalidFunction)
	}
	return token, nil
}
