package account

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"punctual/integration/story"
)

const (
	root   = "../.."
	prefix = "punctual-account" // of nothing that anybody uses
	tenant = "acme"
)

// settings of the deployment: tokens from a user pool of its own.
const settings = "prefix=" + prefix + " auth=cognito tenants=" + tenant

// deployment is dev in the account of the credentials.
type deployment struct{ account, region string }

// command runs one in the root of the repository, and returns what it printed to its output.
func (d deployment) command(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "AWS_PAGER=", "AWS_REGION="+d.region)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

func (d deployment) make(ctx context.Context, target string, more ...string) (string, error) {
	return d.command(ctx, "make", append([]string{"-s", target, "TARGET=dev", "REGION=" + d.region,
		"ACCOUNT=" + d.account, "SETTINGS=" + settings}, more...)...)
}

// destroy says yes beforehand: no person sits at a terminal.
func (d deployment) destroy(ctx context.Context) error {
	args := []string{"infra/cdk.js", "destroy", "--all", "--force", "-c", "target=dev", "-c", "region=" + d.region,
		"-c", "account=" + d.account}
	for _, s := range strings.Fields(settings) {
		args = append(args, "-c", s)
	}
	_, err := d.command(ctx, "node", args...)
	return err
}

// api is the deployed one, with a token of the tenant.
func (d deployment) api(t *testing.T) *story.API {
	t.Helper()
	token, err := d.make(t.Context(), "token", "TENANT="+tenant, "SCOPES=read write admin")
	if err != nil {
		t.Fatal(err)
	}
	at, err := d.command(t.Context(), "aws", "cloudformation", "describe-stacks", "--stack-name", prefix+"-flow",
		"--query", "Stacks[0].Outputs[?OutputKey=='ApiUrl'].OutputValue", "--output", "text")
	if err != nil {
		t.Fatal(err)
	}
	base := strings.TrimSuffix(strings.TrimSuffix(at, "/"), "/v1")
	return story.Remote(t, &http.Client{Timeout: 40 * time.Second}, base, "", token)
}

// It takes an hour and a half and about a dollar, and runs only where PUNCTUAL_ACCOUNT names the account: the 12
// digits that the credentials must be of.
func TestAccount_KeepsWhatEmulatorsCannotShow(t *testing.T) {
	d := deployment{account: os.Getenv("PUNCTUAL_ACCOUNT"), region: os.Getenv("AWS_REGION")}
	if d.account == "" {
		t.Skip("PUNCTUAL_ACCOUNT names no account to deploy to: make account ACCOUNT=…")
	}
	cfg, err := config.LoadDefaultConfig(t.Context(), config.WithRegion(d.region))
	if err != nil {
		t.Fatal(err)
	}
	who, err := sts.NewFromConfig(cfg).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil {
		t.Fatal(err)
	}
	if *who.Account != d.account {
		t.Fatalf("the credentials are of account %s, not of %s: nothing was done", *who.Account, d.account)
	}
	t.Cleanup(func() {
		if os.Getenv("PUNCTUAL_KEEP") != "" {
			t.Logf("kept: %s", prefix)
			return
		}
		if err := d.destroy(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("something is left, and costs money: %v", err)
		}
	})
	began := time.Now()
	if _, err := d.make(t.Context(), "deploy", "APPROVAL=never"); err != nil {
		t.Fatal(err)
	}
	t.Logf("deployed in %s", time.Since(began).Round(time.Second))
	a := d.api(t)
	t.Run("a user's story comes out as told", func(t *testing.T) { narrate(t, a) })
	t.Run("jobs start on time, by timers and without", func(t *testing.T) { lateness(t, a.In(t)) })
	t.Run("each fact is as the code needs it", func(t *testing.T) {
		p, err := newProbe(t.Context(), cfg, prefix, false)
		t.Cleanup(func() {
			if err := p.close(context.WithoutCancel(t.Context())); err != nil {
				t.Errorf("something is left: %v", err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		all := checkAll(t.Context(), facts, p)
		t.Log("\n" + report(all))
		for _, v := range all {
			if v.err != nil || v.checked && !v.holds {
				t.Error(v)
			}
		}
	})
}

// most is how long a step may take while machines come.
const most = 5 * time.Minute

func narrate(t *testing.T, a *story.API) {
	t.Run("the token is of the tenant", func(t *testing.T) {
		if me := a.In(t).Want(http.StatusOK, "GET", "/whoami", nil); me["tenant"] != tenant {
			t.Errorf("whoami says %v", me)
		}
	})
	t.Run("people can sign in at the console page", func(t *testing.T) {
		a := a.In(t)
		said := a.Want(http.StatusOK, "GET", "/console/config.json", nil)
		of := func(name string) string { s, _ := said[name].(string); return s }
		p := page{issuer: of("issuer"), client: of("client"), scope: of("scope"),
			at: a.Base + "/v1/console/index.html"}
		form, err := p.signIn(t.Context(), &http.Client{Timeout: 40 * time.Second})
		if err != nil {
			t.Fatalf("the page is told %v: %v", said, err)
		}
		t.Logf("the page sends people to %s", form)
	})
	a.LivesOfJobs(t, most)
}

// lateness submits a hundred jobs of each lane, a job a second, and says how late they started.
func lateness(t *testing.T, a *story.API) {
	const n, promised = 100, time.Second
	lanes := []struct {
		name  string
		after time.Duration
	}{{"in a queue", time.Minute}, {"by timers", 17 * time.Minute}, {"by the promoter", 33 * time.Minute}}
	ids := make([][]string, len(lanes))
	for l, lane := range lanes {
		jobs := make([]story.Object, n)
		for i := range jobs {
			jobs[i] = story.Object{"task": "echo", "delay": fmt.Sprintf("%ds", int(lane.after.Seconds())+i)}
		}
		items, _ := a.Want(http.StatusOK, "POST", "/jobs/batch", story.Object{"jobs": jobs})["items"].([]any)
		for _, i := range items {
			job, _ := i.(story.Object)["job"].(story.Object)
			id, _ := job["job_id"].(string)
			ids[l] = append(ids[l], id)
		}
	}
	began := time.Now()
	for l, lane := range lanes {
		time.Sleep(time.Until(began.Add(lane.after + n*time.Second)))
		var late []time.Duration
		for _, id := range ids[l] {
			ms, _ := a.Await(id, "SUCCEEDED", most)["start_lateness_ms"].(float64)
			late = append(late, time.Duration(ms)*time.Millisecond)
		}
		slices.Sort(late)
		p99 := late[n*99/100]
		t.Logf("start lateness of %d jobs %s: p50 %s, p99 %s, last %s", n, lane.name, late[n/2], p99, late[n-1])
		if late[0] < 0 || p99 > promised {
			t.Errorf("%s: p99 is %s, promised is %s", lane.name, p99, promised)
		}
	}
}
