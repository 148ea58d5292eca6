package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Selector says which of the listed sessions to watch: those that match all of it.
// As text it is a list such as agent=ID,metadata.team=billing.
type Selector struct {
	// AgentID is the id of the session's agent; empty means any.
	AgentID string
	// Metadata are exact pairs of the session's metadata.
	Metadata map[string]string
}

// UnmarshalText reads the text form.
func (s *Selector) UnmarshalText(text []byte) error {
	*s = Selector{}
	for condition := range strings.SplitSeq(string(text), ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(condition), "=")
		key, isMetadata := strings.CutPrefix(name, "metadata.")
		switch {
		case !ok || value == "":
			return fmt.Errorf("%q is no condition; want agent=ID or metadata.KEY=VALUE", condition)
		case name == "agent" && s.AgentID == "":
			s.AgentID = value
		case name == "agent":
			return fmt.Errorf("%q: a session has one agent; use --select once for each", condition)
		case isMetadata && key != "":
			if s.Metadata == nil {
				s.Metadata = map[string]string{}
			}
			if _, twice := s.Metadata[key]; twice {
				return fmt.Errorf("%q: the key has a value already", condition)
			}
			s.Metadata[key] = value
		default:
			return fmt.Errorf("%q: unknown condition %q; want agent=ID or metadata.KEY=VALUE", condition, name)
		}
	}
	return nil
}

// String is the text form.
func (s Selector) String() string {
	var conditions []string
	if s.AgentID != "" {
		conditions = append(conditions, "agent="+s.AgentID)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Metadata)) {
		conditions = append(conditions, "metadata."+key+"="+s.Metadata[key])
	}
	return strings.Join(conditions, ",")
}

// MarshalText writes the text form.
func (s Selector) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
