package model

// after is a single job that comes after two others (rule all_done), from its request onwards.
type after struct {
	entry    [2]bool
	followed [2]bool
	parent   [2]status
	child    status  // waiting means BLOCKED, running means released
	request  uint8   // the step of the request
	pending  [2]bool // the child is still to be evaluated because this parent has ended
	crashes  uint8
	sweeps   bool // the child's own wake-up comes
	broken   Broken
	bad      string
}

// The conditions of jobs after jobs that can be left out.
const (
	NoEvaluationAtLast Broken = "a request does not judge the rule after it has put the row"
	OpenBeforeBoth     Broken = "a job after others does not read all of them"
	NoWakeOfIts        Broken = "a job after others has no wake-up of its own"
)

func (a after) wrong(rests bool) string {
	if a.bad != "" {
		return a.bad
	}
	if rests && a.child == waiting {
		return "the job is stuck"
	}
	return ""
}

// release evaluates the child by the rows of its parents.
func (a *after) release() {
	both := a.parent[0].final() && a.parent[1].final()
	if a.child != waiting || !both && a.broken != OpenBeforeBoth {
		return
	}
	if !both {
		a.bad = "the job runs before its parents have ended"
	}
	a.child = running
}

func (a after) follow(each func(string, bool, after)) {
	busy := false
	for p := range a.parent {
		if a.parent[p] == waiting {
			to := a
			to.parent[p] = succeeded
			to.pending[p] = a.followed[p] // the answer to the write shows it
			each("a parent ends", false, to)
			busy = true
		}
		if a.pending[p] {
			to := a
			to.pending[p] = false
			if a.entry[p] {
				to.release()
			}
			each("the child is judged", false, to)
			busy = true
			if a.crashes > 0 {
				to := a
				to.pending[p] = false
				to.crashes--
				each("a crash keeps the child from being judged", true, to)
			}
		}
	}
	if a.request < 6 {
		to := a
		to.request++
		switch a.request {
		case 0, 1:
			to.entry[a.request] = true
		case 2, 3:
			if p := a.request - 2; a.parent[p] == waiting {
				to.followed[p] = true
			}
		case 4:
			to.child = waiting
		case 5:
			if a.broken != NoEvaluationAtLast {
				to.release()
			}
		}
		each("the request goes on", false, to)
		busy = true
		if a.crashes > 0 {
			to := a
			to.request = 6
			to.crashes--
			each("the request crashes", true, to)
		}
	}
	if !busy && a.sweeps && a.child == waiting && a.broken != NoWakeOfIts {
		to := a
		to.release()
		each("the job wakes up", false, to)
	}
}
