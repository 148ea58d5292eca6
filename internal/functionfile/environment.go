package functionfile

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/callfan/callfan/pkg/executor"
)

// inherited are the variables that a program gets from the executor's own
// environment. All others stay out, so that no program sees the secrets of NATS.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
	// Windows programs do not start without these.
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
}

func inheritedEnvironment() []string {
	var env []string
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// callEnvironment tells a program about its call.
func callEnvironment(c executor.Call) []string {
	set := func(name, value string) string {
		return name + "=" + strings.ReplaceAll(value, "\x00", "\uFFFD") // no program can be given a NUL
	}
	env := []string{
		set("FN_SESSION_ID", c.Session),
		set("FN_TURN_ID", c.Turn),
		set("FN_CALL_ID", c.Key.Call),
		set("FN_FUNCTION", c.Function),
		set("FN_ATTEMPT", strconv.Itoa(c.Attempt)),
		set("FN_DEADLINE", c.Deadline.UTC().Format(time.RFC3339Nano)),
		set("IDEMPOTENCY_KEY", c.IdempotencyKey),
	}
	if c.Uncertain {
		env = append(env, "FN_UNCERTAIN=1")
	}
	if c.Traceparent != "" {
		env = append(env, set("TRACEPARENT", c.Traceparent))
	}
	return env
}
