package spec

import (
	"cmp"
	"regexp"
	"strconv"
	"unicode/utf8"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/search"
)

// IDPrefixPattern is the form of the beginning of an id, in a filter.
var IDPrefixPattern = `^[0-9A-HJKMNP-TV-Z]{` + strconv.Itoa(search.MinIDPrefix) + `,` + strconv.Itoa(JobIDLength) + `}$`

// FilterForm is the form of a filter that is a text. A query and a body are read alike.
type FilterForm struct {
	name, allowed string
	bound         field.Bound
	fits          func(string) bool
}

// Forms of filters.
var (
	// CodeFilter is the code of a reason, which a handler may have chosen.
	CodeFilter = FilterForm{"code", "a code of 1 to " + strconv.Itoa(contract.MaxErrorCode) + " bytes, such as " +
		job.CodeHandler, field.Characters(1, contract.MaxErrorCode), func(code string) bool {
		return code != "" && len(code) <= contract.MaxErrorCode
	}}
	GroupFilter = FilterForm{"group", strconv.Itoa(search.GroupLength) + " characters, as /v1/dead-letters/groups " +
		"lists them", field.Matching(search.GroupPattern, search.GroupLength),
		regexp.MustCompile(search.GroupPattern).MatchString}
	IDFilter = FilterForm{"id", "the first " + strconv.Itoa(search.MinIDPrefix) + " to " + strconv.Itoa(JobIDLength) +
		" characters of a job's id, in capital letters", field.Matching(IDPrefixPattern, JobIDLength),
		regexp.MustCompile(IDPrefixPattern).MatchString}
	RunIDFilter = FilterForm{"run_id", "the id of a run: " + strconv.Itoa(JobIDLength) + " characters of a ULID",
		IDForm,
		func(id string) bool {
			_, err := job.ParseID(id)
			return err == nil
		}}
)

func (f FilterForm) violation(pointer string) fault.Field {
	return fault.Field{Pointer: pointer, Code: CodeInvalidFilter, Detail: "this is not a filter by " + f.name,
		Allowed: f.allowed}
}

// Check adds a violation if the filter of a query is given and does not have the form.
func (f FilterForm) Check(wrong *fault.Violations, value string) {
	if value != "" && !f.fits(value) {
		*wrong = append(*wrong, f.violation(f.name))
	}
}

// Field is the filter as a field of a body.
func (f FilterForm) Field(about string) field.Field[string] {
	return field.Text(f.name, about, f.bound, func(r *rest.Reader, v rest.Value) (string, bool) {
		s, ok := r.Text(v)
		if ok && !f.fits(s) {
			r.Wrong = append(r.Wrong, f.violation(v.Pointer))
			return "", false
		}
		return s, ok
	})
}

// FilterTags reads the filters by tags of a query.
func FilterTags(wrong *fault.Violations, tags map[string]string) map[string]string {
	checkTags(tags, func(name, allowed, detail string) {
		*wrong = append(*wrong, fault.Field{Pointer: "tag." + cmp.Or(name, "NAME"), Code: CodeInvalidFilter,
			Detail: detail, Allowed: allowed})
	})
	return tags
}

// TagsFilter is the field of a body with the filters by tags.
var TagsFilter = field.Text("tags", "Tags by name, with their values", nil, readTagsFilter).Shaped(
	field.MapOf(0, search.MaxTags, tagName, field.TextSchema(field.Characters(0, contract.MaxTagValue))))

func readTagsFilter(r *rest.Reader, v rest.Value) (tags map[string]string, ok bool) {
	if !r.IsObject(v, "an object of strings") {
		return nil, false
	}
	r.AllDuplicates(v.Node)
	tags, pointers := map[string]string{}, map[string]string{}
	for name, at := range r.Members(v) {
		if value, ok := r.Text(at); ok {
			tags[name], pointers[name] = value, at.Pointer
		}
	}
	pointers[""] = v.Pointer
	checkTags(tags, func(name, allowed, detail string) {
		r.Violation(pointers[name], CodeInvalidFilter, allowed, "%s", detail)
	})
	return tags, true
}

// checkTags refuses what is wrong with filters by tags: a value by the name of its tag, all else by "".
func checkTags(tags map[string]string, refuse func(name, allowed, detail string)) {
	if len(tags) > search.MaxTags {
		refuse("", "at most "+strconv.Itoa(search.MaxTags)+" tags", strconv.Itoa(len(tags))+" tags are given")
		return
	}
	for name, value := range tags {
		switch {
		case name == "" || utf8.RuneCountInString(name) > contract.MaxTagKey:
			refuse("", "a name of 1 to "+strconv.Itoa(contract.MaxTagKey)+" characters, as in tag.customer=42",
				"no tag has such a name")
		case utf8.RuneCountInString(value) > contract.MaxTagValue:
			refuse(name, "at most "+strconv.Itoa(contract.MaxTagValue)+" characters", "no tag has such a value")
		}
	}
}
