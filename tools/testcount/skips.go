package main

// allowedSkips names the tests that may be skipped, as "import path.TestName", and says why a user would accept that.
var allowedSkips = map[string]string{}
