package executor

import (
	"punctual/shared/contract"
	"punctual/shared/span"
)

// Echo is the name of the executor, as tasks give it.
const Echo = "echo"

// EchoPayload is what the echo executor looks at in a payload that is an object.
type EchoPayload struct {
	Sleep string `json:"sleep,omitempty"`
	Fail  int    `json:"fail,omitempty" doc:"Number of first attempts that fail"`
}

// maxFails is more attempts than a job can have.
const maxFails = 1 << 30

var echoKind = Kind{
	Name: Echo, BuiltIn: true, Payload: EchoPayload{}, Loose: true, Check: checkEcho,
	About: "answers with the payload, to try pools, priorities, pauses and limits without a server",
	Bounds: map[string]Fields{"EchoPayload": {
		"sleep": {
			"description": "Duration of the work; 0s to " + span.Format(contract.MaxAhead),
			"pattern":     contract.DurationPattern, "maxLength": span.MaxText, "examples": []string{"30s"},
			"x-minimum": "0s", "x-maximum": span.Format(contract.MaxAhead),
		},
		"fail": {"minimum": 0, "maximum": maxFails},
	}},
}

// checkEcho checks the two fields that echo understands; anything else it repeats.
func checkEcho(r Reader, v Value, _ Site) {
	for name, member := range r.Members(v) {
		switch name {
		case "sleep":
			r.Span(member)
		case "fail":
			r.Whole(member, 0, maxFails)
		}
	}
}
