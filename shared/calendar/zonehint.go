package calendar

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"punctual/shared/text"
)

// noZone returns the refusal of a name that is no zone, with the zone that was probably meant. A wrong guess would run
// a job an hour off, so letters such as PST are only taken for cities that keep that time, and never for each other.
func noZone(field, name string) *Error {
	no := func(format string, args ...any) *Error {
		return refuse(field, CodeInvalidValue, zoneAllowed, "time zone "+format, args...)
	}
	if offset, ok := parseOffset(name); ok {
		if etc := etcZone(offset); etc != "" {
			return no(
				"%s does not exist; %q is that offset all year (its sign counts the other way), and a city follows "+
					"the clock changes",
				quoted(name),
				etc,
			)
		}
		if city := offsetCities[offset]; city != "" {
			return no("%s does not exist; name a city that keeps that time, such as %q", quoted(name), city)
		}
		return no("%s does not exist, and no zone keeps that offset all year", quoted(name))
	}
	if cities := abbreviations[strings.ToUpper(name)]; len(cities) > 0 {
		return no("%s does not exist: letters have several meanings; name a city, such as %s", quoted(name),
			strings.Join(quotedAll(cities), " or "))
	}
	if like := similarZone(name); like != "" {
		return no("%s does not exist; did you mean %q?", quoted(name), like)
	}
	return no("%s does not exist", quoted(name))
}

func quotedAll(names []string) (list []string) {
	for _, n := range names {
		list = append(list, fmt.Sprintf("%q", n))
	}
	return list
}

var offsetShape = regexp.MustCompile(`^(?:UTC|GMT|Z)?([+-])0?([0-9]{1,2})(?::?([0-9]{2}))?$`)

// parseOffset returns an offset such as "UTC+2" or "GMT-0330" as "+02:00" or "-03:30"; false for anything else.
func parseOffset(name string) (string, bool) {
	m := offsetShape.FindStringSubmatch(strings.ToUpper(name))
	if m == nil {
		return "", false
	}
	hours, minutes := m[2], m[3]
	if len(hours) == 1 {
		hours = "0" + hours
	}
	if minutes == "" {
		minutes = "00"
	}
	return m[1] + hours + ":" + minutes, true
}

// etcZone returns the zone of an offset of whole hours, "" where there is none.
func etcZone(offset string) string {
	hours, whole := strings.CutSuffix(strings.TrimLeft(offset[1:], "0"), ":00")
	switch {
	case !whole:
		return ""
	case hours == "":
		return "UTC"
	}
	etc := "Etc/GMT" + map[byte]string{'+': "-", '-': "+"}[offset[0]] + hours
	if _, ok := zoneFiles()[etc]; !ok {
		return ""
	}
	return etc
}

// offsetCities names a zone for each offset that is not of whole hours and that one keeps all year.
var offsetCities = map[string]string{
	"-09:30": "Pacific/Marquesas", "+03:30": "Asia/Tehran", "+04:30": "Asia/Kabul", "+05:30": "Asia/Kolkata",
	"+05:45": "Asia/Kathmandu", "+06:30": "Asia/Yangon", "+08:45": "Australia/Eucla", "+09:30": "Australia/Darwin",
}

// abbreviations names cities for letters that are no zone. Those of several countries have a city of each.
var abbreviations = map[string][]string{
	"PST": {"America/Los_Angeles"}, "PDT": {"America/Los_Angeles"}, "PT": {"America/Los_Angeles"},
	"MDT": {"America/Denver"}, "MT": {"America/Denver"},
	"CST": {"America/Chicago", "Asia/Shanghai"}, "CDT": {"America/Chicago"}, "CT": {"America/Chicago"},
	"EDT": {"America/New_York"}, "ET": {"America/New_York"},
	"AST": {"America/Halifax"}, "ADT": {"America/Halifax"}, "NST": {"America/St_Johns"}, "NDT": {"America/St_Johns"},
	"AKST": {"America/Anchorage"}, "AKDT": {"America/Anchorage"}, "HDT": {"America/Adak"},
	"BRT": {"America/Sao_Paulo"}, "ART": {"America/Argentina/Buenos_Aires"}, "CLT": {"America/Santiago"},
	"BST": {"Europe/London"}, "IST": {"Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"},
	"WEST": {"Europe/Lisbon"}, "CEST": {"Europe/Berlin"}, "MEZ": {"Europe/Berlin"}, "MESZ": {"Europe/Berlin"},
	"EEST": {"Europe/Helsinki"}, "MSK": {"Europe/Moscow"}, "TRT": {"Europe/Istanbul"},
	"CAT": {"Africa/Maputo"}, "EAT": {"Africa/Nairobi"}, "WAT": {"Africa/Lagos"}, "SAST": {"Africa/Johannesburg"},
	"GST": {"Asia/Dubai"}, "PKT": {"Asia/Karachi"}, "ICT": {"Asia/Bangkok"}, "WIB": {"Asia/Jakarta"},
	"SGT": {"Asia/Singapore"}, "HKT": {"Asia/Hong_Kong"}, "PHT": {"Asia/Manila"}, "JST": {"Asia/Tokyo"},
	"KST": {"Asia/Seoul"}, "AWST": {"Australia/Perth"}, "ACST": {"Australia/Adelaide"}, "ACDT": {"Australia/Adelaide"},
	"AEST": {"Australia/Sydney", "Australia/Brisbane"}, "AEDT": {"Australia/Sydney"},
	"NZST": {"Pacific/Auckland"}, "NZDT": {"Pacific/Auckland"},
}

// fixedLetters are zones whose name is read as the time of a country, which changes its clock; they never do.
var fixedLetters = map[string]string{"EST": "America/New_York", "MST": "America/Denver"}

// zoneNote returns a sentence about a zone that is easily misread; empty for others.
func zoneNote(name string) string {
	city := fixedLetters[name]
	if city == "" {
		return ""
	}
	return fmt.Sprintf("%s is the same offset all year and never changes its clock; %q follows the clock changes", name,
		city)
}

// similarZone returns the zone whose name differs from name by a typing error, "" if there is none. A few letters are
// too little to guess by: they match a zone only if nothing but case differs.
func similarZone(name string) string {
	const short = 5
	var names []string
	for _, n := range slices.Sorted(maps.Keys(zoneFiles())) {
		if strings.EqualFold(n, name) {
			return n
		}
		if len(n) > short || strings.Contains(n, "/") {
			names = append(names, n)
		}
	}
	if len(name) <= short {
		return ""
	}
	return text.Nearest(name, names)
}
