// Package schema checks the arguments of calls against the JSON Schema that their
// function was registered with (ADR 0016). It reads the arguments and leaves their bytes
// alone.
//
// The check never refuses what the schema allows. What it cannot judge it lets pass, and
// executors check again: a schema with regular expressions that Go's engine does not know
// (ECMA 262 has lookarounds and back references), one of more than MaxSchema bytes, and
// numbers of more than a thousand digits.
//
// Draft 2020-12 is assumed where "$schema" names no other. "format" is an annotation in
// every draft, and nothing is ever loaded for "$ref": a schema refers to itself, or to the
// published drafts.
package schema
