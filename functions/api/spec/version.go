package spec

import "punctual/functions/api/rest"

// FitsVersion returns a problem if a thing of a kind, such as a limit, has another version than a request wants. The
// request wants any if wanted is 0; a thing that is not there has the version 0.
func FitsVersion(kind string, wanted, has int64) error {
	switch {
	case wanted == 0 || wanted == has:
		return nil
	case has == 0:
		return rest.NewProblem(CodeStaleVersion, "there is no %s of this name, so none of version %d", kind, wanted)
	}
	return rest.NewProblem(CodeStaleVersion, "the %s is at version %d, not %d", kind, has, wanted)
}
