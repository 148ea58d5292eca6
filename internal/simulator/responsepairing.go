package simulator

// checkPairing refuses an input that does not fit the items before it: an answer to no call, a call without an answer,
// or a call without the reasoning that led to it. base are the items that the service has already; input are the new ones.
func (s *Simulator) checkPairing(base, input []*responseItem) error {
	type called struct {
		it       *responseItem
		answered bool
	}
	calls := make(map[string]*called)
	var order []*called
	walk := func(items []*responseItem, added bool) error {
		for _, it := range items {
			switch {
			case it.isCall():
				c := &called{it: it, answered: it.async || it.incomplete}
				calls[it.callID] = c
				order = append(order, c)
			case it.isAnswer():
				c := calls[it.callID]
				if c == nil || c.it.kind != answerKinds[it.kind] {
					return refused("input", "", "No tool call found for %s output with call_id %s.",
						callKinds[answerKinds[it.kind]], it.callID)
				}
				if added && c.answered && !c.it.async && s.sw.RefuseSecondOutput {
					return refused("input", "", "Duplicate output for %s %s.", callKinds[c.it.kind], it.callID)
				}
				c.answered = true
			}
		}
		return nil
	}
	if err := walk(base, false); err != nil {
		return err
	}
	if err := walk(input, true); err != nil {
		return err
	}
	for _, c := range order {
		if !c.answered {
			return refused("input", "", "No tool output found for %s %s.", callKinds[c.it.kind], c.it.callID)
		}
	}
	return s.checkReasoning(base, input)
}

// checkReasoning holds reasoning items and the calls that came with them together.
func (s *Simulator) checkReasoning(base, input []*responseItem) error {
	present := make(map[string]struct{})
	for _, it := range base {
		present[it.id] = struct{}{}
	}
	for i, it := range input {
		present[it.id] = struct{}{}
		if it.kind != kindReasoning {
			continue
		}
		switch stored := s.responses.hasItem(it.id); {
		case it.encrypted != "" && it.encrypted != encryptReasoning(it.id):
			return refused("", "invalid_encrypted_content",
				"The encrypted content for item %s could not be verified. Reason: Encrypted content could not be decrypted or parsed.", it.id)
		case it.encrypted == "" && !stored:
			return notPersisted(it.id)
		case i+1 == len(input) || input[i+1].isAnswer() || input[i+1].kind == kindMessage && input[i+1].role != "assistant":
			return refused("input", "",
				"Item '%s' of type 'reasoning' was provided without its required following item.", it.id)
		}
	}
	for _, it := range input {
		if reasoning := s.responses.reasoningOf(it.id); reasoning != "" {
			if _, ok := present[reasoning]; !ok {
				return refused("input", "", "Item '%s' of type '%s' was provided without its required 'reasoning' item: '%s'.",
					it.id, it.kind, reasoning)
			}
		}
	}
	return nil
}

func notPersisted(id string) *apiError {
	e := unknownObject("Item with id '%s' not found. Items are not persisted when `store` is set to false. "+
		"Try again with `store` set to true, or remove this item from your input.", id)
	e.param = "input"
	return e
}

// resolve replaces references by the items they name.
func (s *Simulator) resolve(input []*responseItem) error {
	for i, it := range input {
		if it.kind != kindReference {
			continue
		}
		stored, ok := s.responses.item(it.id)
		if !ok {
			return notPersisted(it.id)
		}
		input[i] = stored
	}
	return nil
}
