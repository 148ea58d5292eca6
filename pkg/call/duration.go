package call

import "time"

// Duration is a time.Duration that reads and writes itself as text, such as
// "30s" or "1m30s", in JSON and YAML.
type Duration time.Duration

// String writes the duration as time.Duration.String does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes the duration as time.Duration.String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return err
	}
	*d = Duration(v)
	return nil
}
