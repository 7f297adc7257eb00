package spec

import (
	"strconv"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/search"
)

// IDPrefixPattern is the form of the beginning of an id, in a filter.
var IDPrefixPattern = `^[0-9A-HJKMNP-TV-Z]{` + strconv.Itoa(search.MinIDPrefix) + `,` + strconv.Itoa(JobIDLength) + `}$`

// FilterTags reads the filters by tags.
func FilterTags(wrong *fault.Violations, tags map[string]string) map[string]string {
	refuse := func(name, allowed, detail string) {
		*wrong = append(*wrong, fault.Field{Pointer: name, Code: CodeInvalidFilter, Detail: detail, Allowed: allowed})
	}
	if len(tags) > search.MaxTags {
		refuse("tag.NAME", "at most "+strconv.Itoa(search.MaxTags)+" tags", strconv.Itoa(len(tags))+" tags are given")
	}
	for name, value := range tags {
		switch {
		case name == "" || len(name) > contract.MaxTagKey:
			refuse("tag.NAME", "a name of 1 to "+strconv.Itoa(contract.MaxTagKey)+" bytes, as in tag.customer=42",
				"no tag has such a name")
		case len(value) > contract.MaxTagValue:
			refuse("tag."+name, "at most "+strconv.Itoa(contract.MaxTagValue)+" bytes", "no tag has such a value")
		}
	}
	return tags
}
