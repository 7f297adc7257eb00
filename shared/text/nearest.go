package text

import "strings"

// longestName is how long a word may be for a nearest one to be looked for: the work grows with its length.
const longestName = 64

// Nearest returns the word that the caller probably meant by word: at most two letters away, and fewer than
// it has. It returns "" if none is near; of several as near as each other, the first.
func Nearest(word string, words []string) string {
	best, least := "", 3
	if len(word) > longestName {
		return ""
	}
	for _, w := range words {
		if most := min(least, len(word), len(w)); max(len(w)-len(word), len(word)-len(w)) < most {
			if d := distance(strings.ToLower(word), strings.ToLower(w)); d < most {
				best, least = w, d
			}
		}
	}
	return best
}

// distance counts the letters to add, drop, change or swap with their neighbour to turn a into b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
