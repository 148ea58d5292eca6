//go:build unix

package chaos

// Bugs are the planted faults by name, with the build tag that plants each. A normal build contains none of them.
var Bugs = map[string]string{
	"ack-before-save": "chaosbug_ackbeforesave",
	"no-fence":        "chaosbug_nofence",
	"no-claim":        "chaosbug_noclaim",
}
