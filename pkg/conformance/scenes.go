package conformance

// scenes are all of the suite, the longest first.
func scenes() []scene {
	return []scene{
		crashScene(),
		redeliveredScene(),
		leaseScene(),
		killScene(),
		frozenScene(),
		lateScene(),
		stopScene(),
		restartScene(),
		mainScene(),
		backlogScene(),
		slotScene(),
		userScene(),
		tlsScene(),
	}
}

func mainScene() scene {
	s := scene{name: "main"}
	for _, checks := range [][]check{registrationChecks(), argumentChecks(), outputChecks(), failureChecks(), callChecks(), cancelChecks()} {
		s.checks = append(s.checks, checks...)
	}
	return s
}
