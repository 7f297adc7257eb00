package dag

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"

	"punctual/shared/job"
)

// NodeView is what a picture shows of a node.
type NodeView struct {
	Status job.Status // "" is BLOCKED
	Note   string     // a second line, such as "3 of 10 items"; "": none
}

// drawn is how a status is drawn: by colour and by shape, so that either alone shows it.
type drawn struct {
	fill, line  string
	word        string // the colour of its name, "" for that of line
	open, close string // of Mermaid's shape
	shape       string // of the SVG
}

// drawnAs lists how each status is drawn.
var drawnAs = map[job.Status]drawn{
	job.Blocked:   {"#f6f8fa", "#8c959f", "#57606a", "[", "]", "dashed"},
	job.Scheduled: {"#fff8c5", "#9a6700", "", "([", "])", "pill"},
	job.Queued:    {"#fff8c5", "#9a6700", "", "([", "])", "pill"},
	job.Running:   {"#ddf4ff", "#0969da", "", "{{", "}}", "hexagon"},
	job.Succeeded: {"#dafbe1", "#1a7f37", "", "(", ")", "round"},
	job.Dead:      {"#ffebe9", "#cf222e", "", "[[", "]]", "octagon"},
	job.Expired:   {"#ffebe9", "#cf222e", "", "[[", "]]", "octagon"},
	job.Cancelled: {"#eaeef2", "#57606a", "", "[\\", "/]", "trapezoid"},
	job.Skipped:   {"#ffffff", "#57606a", "", "[/", "/]", "slanted"},
}

func (l NodeView) drawn() (job.Status, drawn) {
	if d, ok := drawnAs[l.Status]; ok {
		return l.Status, d
	}
	return job.Blocked, drawnAs[job.Blocked]
}

// statusesDrawn are those of drawnAs, in the order of a node's life.
var statusesDrawn = []job.Status{
	job.Blocked, job.Scheduled, job.Queued, job.Running, job.Succeeded, job.Dead, job.Expired, job.Cancelled,
	job.Skipped,
}

// Mermaid writes the graph as a Mermaid flowchart, parents above children.
func (g *Graph) Mermaid(appearances map[string]NodeView) string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	id := map[string]string{}
	used := map[job.Status]bool{}
	for n, name := range g.names {
		id[name] = fmt.Sprintf("n%d", n)
		status, d := appearances[name].drawn()
		used[status] = true
		label := name + "<br/>" + string(status)
		if note := appearances[name].Note; note != "" {
			label += "<br/>" + html.EscapeString(note)
		}
		fmt.Fprintf(&b, "  %s%s\"%s\"%s:::%s\n", id[name], d.open, label, d.close, strings.ToLower(string(status)))
	}
	for _, name := range g.names {
		for _, p := range g.Nodes[name].DependsOn {
			fmt.Fprintf(&b, "  %s --> %s\n", id[p], id[name])
		}
	}
	for _, status := range statusesDrawn {
		if d := drawnAs[status]; used[status] {
			fmt.Fprintf(&b, "  classDef %s fill:%s,stroke:%s,color:#1f2328\n",
				strings.ToLower(string(status)), d.fill, d.line)
		}
	}
	return b.String()
}

// Sizes of the SVG, in pixels.
const (
	boxHeight    = 46
	letterWidth  = 7.3       // of a name, in 12 px monospace
	smallLetters = 10.0 / 12 // as wide as those of a name
	boxLeast     = 96
	lineMost     = 32 // letters of a name in one line
	gapAcross    = 22
	gapDown      = 56
	edgeWidth    = 10 // what an edge takes that passes a level
	margin       = 20
	titleHeight  = 26
	sweeps       = 4
	mostPassing  = 20_000 // edges that pass levels, beyond which they are drawn straight
)

// cell is a node in its level, or an edge that passes the level on its way further down.
type cell struct {
	name    string // "" for an edge
	up      []int  // places of the level above that lead here
	x, wide float64
}

// layout puts nodes into rows by their level, and orders each row by what lies above: edges then cross seldom.
// steps says by which places an edge passes, from parent to child.
type layout struct {
	rows  [][]*cell
	at    map[string]*cell
	level map[string]int
	steps map[[2]string][]*cell
	width float64
}

func (g *Graph) layOut(appearances map[string]NodeView) *layout {
	l := &layout{at: map[string]*cell{}, level: map[string]int{}, steps: map[[2]string][]*cell{}}
	passing := 0
	for n, level := range g.levels {
		row := make([]*cell, 0, len(level))
		for _, name := range level {
			letters := float64(len(appearances[name].second())) * smallLetters
			for _, line := range nameLines(name) {
				letters = max(letters, float64(len(line)))
			}
			p := &cell{name: name, wide: max(boxLeast, letters*letterWidth+28)}
			l.at[name], l.level[name] = p, n
			row = append(row, p)
			for _, parent := range g.Nodes[name].DependsOn {
				passing += n - l.level[parent] - 1
			}
		}
		l.rows = append(l.rows, row)
	}
	l.route(g, passing <= mostPassing)
	for range sweeps {
		l.order()
	}
	l.spread()
	return l
}

// route leads each edge through the levels between its ends.
func (l *layout) route(g *Graph, bends bool) {
	index := map[*cell]int{}
	for _, row := range l.rows {
		for n, p := range row {
			index[p] = n
		}
	}
	for _, level := range g.levels {
		for _, name := range level {
			for _, parent := range g.Nodes[name].DependsOn {
				from := l.at[parent]
				for n := l.level[parent] + 1; n < l.level[name] && bends; n++ {
					pass := &cell{wide: edgeWidth, up: []int{index[from]}}
					index[pass] = len(l.rows[n])
					l.rows[n] = append(l.rows[n], pass)
					l.steps[[2]string{parent, name}] = append(l.steps[[2]string{parent, name}], pass)
					from = pass
				}
				if bends || l.level[name] == l.level[parent]+1 {
					l.at[name].up = append(l.at[name].up, index[from])
				}
			}
		}
	}
}

// order sorts each row by the mean place of what leads to it.
func (l *layout) order() {
	for n := 1; n < len(l.rows); n++ {
		row := l.rows[n]
		mean := make(map[*cell]float64, len(row))
		for own, p := range row {
			mean[p] = float64(own) / float64(len(row)) * float64(len(l.rows[n-1]))
			if len(p.up) == 0 {
				continue
			}
			sum := 0
			for _, up := range p.up {
				sum += up
			}
			mean[p] = float64(sum) / float64(len(p.up))
		}
		moved := make(map[int]int, len(row))
		was := make(map[*cell]int, len(row))
		for own, p := range row {
			was[p] = own
		}
		slices.SortStableFunc(row, func(a, b *cell) int {
			switch {
			case mean[a] < mean[b]:
				return -1
			case mean[a] > mean[b]:
				return 1
			}
			return 0
		})
		for own, p := range row {
			moved[was[p]] = own
		}
		if n+1 < len(l.rows) {
			for _, below := range l.rows[n+1] {
				for i, up := range below.up {
					below.up[i] = moved[up]
				}
			}
		}
	}
}

// spread gives every place its x, each row in the middle.
func (l *layout) spread() {
	widths := make([]float64, len(l.rows))
	for n, row := range l.rows {
		for _, p := range row {
			widths[n] += p.wide + gapAcross
		}
		l.width = max(l.width, widths[n]-gapAcross)
	}
	for n, row := range l.rows {
		x := margin + (l.width-(widths[n]-gapAcross))/2
		for _, p := range row {
			p.x = x + p.wide/2
			x += p.wide + gapAcross
		}
	}
}

// SVG draws the graph, parents above children. It is complete in itself: no script, no style and no font of others.
func (g *Graph) SVG(title string, appearances map[string]NodeView) string {
	l := g.layOut(appearances)
	top := func(level int) float64 { return margin + titleHeight + float64(level)*(boxHeight+gapDown) }
	width := max(l.width, float64(len(title))*letterWidth) + 2*margin
	height := top(len(l.rows)-1) + boxHeight + margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" `+
		`role="img" font-family="ui-monospace,monospace" font-size="12" text-anchor="middle"><title>%s</title>`+"\n",
		width, height, width, height, html.EscapeString(title))
	b.WriteString(`<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" ` +
		`orient="auto"><path d="M0 0L8 4L0 8z" fill="#8c959f"/></marker></defs>` + "\n")
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#ffffff"/><text x="%d" y="%d" text-anchor="start" `+
		`fill="#1f2328" font-weight="bold">%s</text>`+"\n", margin, margin+6, html.EscapeString(title))
	for _, name := range g.names {
		for _, parent := range g.Nodes[name].DependsOn {
			x, y := l.at[parent].x, top(l.level[parent])+boxHeight
			fmt.Fprintf(&b, `<path d="M%.1f %.1f`, x, y)
			level := l.level[parent]
			for _, pass := range l.steps[[2]string{parent, name}] {
				level++
				bend(&b, x, y, pass.x, top(level))
				x, y = pass.x, top(level)+boxHeight
				fmt.Fprintf(&b, "L%.1f %.1f", x, y)
			}
			bend(&b, x, y, l.at[name].x, top(l.level[name]))
			b.WriteString(`" fill="none" stroke="#8c959f" marker-end="url(#arrow)"/>` + "\n")
		}
	}
	for _, name := range g.names {
		box(&b, name, appearances[name], l.at[name], top(l.level[name]))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func bend(b *strings.Builder, x, y, toX, toY float64) {
	middle := (y + toY) / 2
	fmt.Fprintf(b, "C%.1f %.1f %.1f %.1f %.1f %.1f", x, middle, toX, middle, toX, toY)
}

// box draws one node.
func box(b *strings.Builder, name string, appearance NodeView, p *cell, y float64) {
	_, d := appearance.drawn()
	fmt.Fprintf(b, `<g id="node-%s"><title>%s: %s</title>`, name, name, html.EscapeString(appearance.second()))
	left, right, low := p.x-p.wide/2, p.x+p.wide/2, y+boxHeight
	style := fmt.Sprintf(`fill="%s" stroke="%s" stroke-width="1.5"`, d.fill, d.line)
	polygon := func(points ...float64) {
		b.WriteString(`<polygon points="`)
		for n := 0; n < len(points); n += 2 {
			fmt.Fprintf(b, "%.1f,%.1f ", points[n], points[n+1])
		}
		b.WriteString(`" ` + style + `/>`)
	}
	rect := func(radius int, more string) {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" rx="%d" %s%s/>`,
			left, y, p.wide, boxHeight, radius, style, more)
	}
	const cut = 10
	middle := (y + low) / 2
	switch d.shape {
	case "hexagon":
		polygon(left, middle, left+cut, y, right-cut, y, right, middle, right-cut, low, left+cut, low)
	case "octagon":
		polygon(left, y+cut, left+cut, y, right-cut, y, right, y+cut,
			right, low-cut, right-cut, low, left+cut, low, left, low-cut)
	case "trapezoid":
		polygon(left, y, right, y, right-cut, low, left+cut, low)
	case "slanted":
		polygon(left+cut, y, right, y, right-cut, low, left, low)
	case "pill":
		rect(boxHeight/2, "")
	case "round":
		rect(10, "")
	default:
		rect(0, ` stroke-dasharray="5 3"`)
	}
	lines, first := nameLines(name), y+20
	if len(lines) > 1 {
		first = y + 14
	}
	for n, line := range lines {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="#1f2328">%s</text>`, p.x, first+float64(12*n),
			html.EscapeString(line))
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="%s" font-size="10">%s</text></g>`+"\n",
		p.x, first+float64(12*len(lines)+3), cmp.Or(d.word, d.line), html.EscapeString(appearance.second()))
}

// second is the line below a node's name.
func (l NodeView) second() string {
	status, _ := l.drawn()
	if l.Note == "" {
		return string(status)
	}
	return string(status) + ", " + l.Note
}

// nameLines breaks a long name in two, where its parts meet if they do near the middle.
func nameLines(name string) []string {
	if len(name) <= lineMost {
		return []string{name}
	}
	at := len(name) / 2
	for off := range len(name)/2 - 1 {
		for _, n := range []int{at - off, at + off} {
			if max(n, len(name)-n) <= lineMost+8 && strings.ContainsRune("_-", rune(name[n-1])) {
				return []string{name[:n], name[n:]}
			}
		}
	}
	return []string{name[:at], name[at:]}
}
