package dispatcher

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"github.com/callfan/callfan/pkg/call"
)

// maxDifferences is how many differences of a tool are logged.
const maxDifferences = 3

// toolSeed makes the hashes of lists of tools comparable within this process.
var toolSeed = maphash.MakeSeed()

// drift is where a session's tools are not as the functions are registered: the model
// works by another schema than the one that arguments are checked against.
type drift struct {
	// list is a hash of the list that was compared last, and functions is closed when
	// the registered functions change after that.
	list      uint64
	functions <-chan struct{}
	// differs are the functions that do, and were reported.
	differs map[string]bool
}

// compareTools reports functions of the session's list that differ from what is
// registered, each once. It compares only when one of the two has changed.
func (s *session) compareTools(list json.RawMessage) {
	if len(list) == 0 {
		return // the API does not show them
	}
	hash, changed := maphash.Bytes(toolSeed, list), s.d.functions.Changed()
	if hash == s.drift.list && changed == s.drift.functions {
		return
	}
	s.drift.list, s.drift.functions = hash, changed
	var tools []json.RawMessage
	if json.Unmarshal(list, &tools) != nil {
		return
	}
	differs := map[string]bool{}
	for _, tool := range call.FunctionTools(tools) {
		f, registered := s.d.functions.Function(tool.Name)
		if !registered {
			continue
		}
		lines := f.Drift(tool)
		if len(lines) == 0 {
			continue
		}
		differs[tool.Name] = true
		if !s.drift.differs[tool.Name] {
			s.d.obs.Count(EventToolDrift)
			s.log.Warn("a tool of the session is not as its function is registered", "function", tool.Name,
				"differences", len(lines), "such_as", strings.Join(lines[:min(len(lines), maxDifferences)], ", "))
		}
	}
	s.drift.differs = differs
}

// drifted lists the functions that differ, by name.
func (s *session) drifted() []string { return slices.Sorted(maps.Keys(s.drift.differs)) }
