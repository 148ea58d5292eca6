// Package spelling finds the word that somebody may have meant.
package spelling

// Nearest is the word that is closest to the one given, empty when none is close.
func Nearest(word string, words []string) string {
	best, found := max(2, len(word)/3)+1, ""
	for _, candidate := range words {
		if d := distance(word, candidate); d < best {
			best, found = d, candidate
		}
	}
	return found
}

// distance counts the single bytes to insert, remove or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
