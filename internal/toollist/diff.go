package toollist

import "slices"

const (
	// around is how many lines are shown around those that differ.
	around = 3
	// maxTable bounds the work for a diff; beyond it all lines are shown as changed.
	maxTable = 4_000_000
)

// diff shows how b differs from a, line by line.
func diff(a, b []string) []string {
	start := 0
	for start < min(len(a), len(b)) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < min(len(a), len(b))-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	var all []string
	all = append(all, marked(" ", a[:start])...)
	all = append(all, middle(a[start:len(a)-end], b[start:len(b)-end])...)
	all = append(all, marked(" ", a[len(a)-end:])...)
	return excerpt(all)
}

// middle keeps the longest common lines.
func middle(a, b []string) []string {
	if len(a)*len(b) > maxTable {
		return append(marked("-", a), marked("+", b)...)
	}
	longest := make([][]int, len(a)+1)
	for i := range longest {
		longest[i] = make([]int, len(b)+1)
	}
	for i, left := range slices.Backward(a) {
		for j, right := range slices.Backward(b) {
			if left == right {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	var out []string
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, "  "+a[i])
			i++
			j++
		case j == len(b) || i < len(a) && longest[i+1][j] >= longest[i][j+1]:
			out = append(out, "- "+a[i])
			i++
		default:
			out = append(out, "+ "+b[j])
			j++
		}
	}
	return out
}

// excerpt leaves out what is far from a change.
func excerpt(lines []string) []string {
	near := make([]bool, len(lines))
	for i, line := range lines {
		if line[0] == ' ' {
			continue
		}
		for k := max(0, i-around); k <= min(len(lines)-1, i+around); k++ {
			near[k] = true
		}
	}
	var out []string
	for i, line := range lines {
		if near[i] {
			out = append(out, line)
		} else if i > 0 && near[i-1] {
			out = append(out, "  …")
		}
	}
	return out
}
