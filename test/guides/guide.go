// Package guides holds the test of the guides in docs/executors whose languages have no tests of their own: it does what
// a reader does, from the first block to the last.
package guides

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// step is one code block of a guide.
type step struct {
	language, text string
	// file is where the guide says to save it.
	file string
	// stays says that the guide has it left running.
	stays bool
}

var (
	fenced = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	saved  = regexp.MustCompile("[Ss]ave (?:it|this) as `([^`]+)`")
)

// read gives the steps of a guide in their order. What is to be done with a block stands in the prose before it.
func read(path string) ([]step, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var steps []step
	text, end := string(raw), 0
	for _, at := range fenced.FindAllStringSubmatchIndex(text, -1) {
		s := step{language: text[at[2]:at[3]], text: text[at[4]:at[5]]}
		prose := text[end:at[0]]
		if name := saved.FindStringSubmatch(prose); name != nil {
			s.file = name[1]
		}
		s.stays = strings.Contains(strings.ToLower(prose), "leave it running")
		if s.file == "" && s.language != "sh" {
			return nil, fmt.Errorf("%s: a block of %s is neither saved nor run:\n%s", path, s.language, s.text)
		}
		steps, end = append(steps, s), at[1]
	}
	return steps, nil
}
