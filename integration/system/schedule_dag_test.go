package system_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"punctual/integration/story"
)

// etl is a dag of two steps. The payload of the second has the run's params.
func etl() object {
	return object{
		"nodes": object{
			"a": object{"task": "step", "payload": object{"node": "a"}},
			"b": object{"task": "step", "depends_on": []string{"a"},
				"payload": object{"node": "b", "of": "${params.x}"}},
		},
		"params": object{"x": 1},
	}
}

// sayOf shortens a schedule's occurrences that began by now, oldest first: "ran SUCCEEDED".
func (g *graphs) sayOf(name string) (all []string) {
	g.T.Helper()
	list := g.occurrences(name, "")
	slices.Reverse(list)
	for _, o := range list {
		parts := []string{}
		for _, field := range []string{"outcome", "status", "reason"} {
			if s, ok := o[field].(string); ok && s != "" {
				parts = append(parts, s)
			}
		}
		all = append(all, strings.Join(parts, " "))
	}
	return all
}

// came requires those outcomes of a schedule's occurrences, oldest first.
func (g *graphs) came(name string, want ...string) {
	g.T.Helper()
	if got := g.sayOf(name); !slices.Equal(got, want) {
		g.T.Errorf("schedule %s came to\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func (g *graphs) put(name, cron string, more object) {
	g.T.Helper()
	body := object{"calendar": object{"cron": cron}, "dag": object{"name": "etl"}}
	for k, v := range more {
		body[k] = v
	}
	g.Want(http.StatusCreated, "PUT", "/schedules/"+name, body)
}

func TestRun_JudgesPayloadsByTheirTasksSchema(t *testing.T) {
	t.Parallel()
	ofGraphs(t, func(g *graphs) {
		task := func(most int) object {
			return object{
				"executor": "go", "retry": object{"max_attempts": 1},
				"payload_schema": object{"properties": object{"of": object{"type": "integer", "maximum": most}}},
			}
		}
		g.Want(http.StatusOK, "PUT", "/tasks/step", task(10))
		g.Want(http.StatusCreated, "PUT", "/dags/etl", etl())
		id, _ := g.Want(http.StatusAccepted, "POST", "/dags/etl/runs",
			object{"params": object{"x": 11}})["run_id"].(string)
		time.Sleep(10 * time.Second)
		is := g.Want(http.StatusOK, "GET", "/runs/"+id+"/nodes/b", nil)
		why, _ := is["status_reason"].(map[string]any)
		if is["status"] != "DEAD" || why["code"] != "invalid_payload" ||
			why["message"] != "/payload/of: the number is too large (of the task's payload_schema); "+
				"allowed: maximum 10" {
			t.Errorf("the node is %v", is)
		}
		if ran := g.ran(); ran != "a" {
			t.Errorf("nodes that ran: %s", ran)
		}
		g.Want(http.StatusOK, "PUT", "/tasks/step", task(11))
		g.Want(http.StatusOK, "POST", "/runs/"+id+"/nodes/b/retry", object{"reason": "the bound was wrong"})
		time.Sleep(10 * time.Second)
		if is := g.Want(http.StatusOK, "GET", "/runs/"+id, nil); is["status"] != "SUCCEEDED" {
			t.Errorf("the run is %v", is)
		}
	})
}

func TestScheduleOfDag_GivesItsRunsPriorityAndTags(t *testing.T) {
	t.Parallel()
	ofGraphs(t, func(g *graphs) {
		d := etl()
		d["priority"], d["tags"] = "low", object{"team": "a", "of": "dag"}
		g.Want(http.StatusCreated, "PUT", "/dags/etl", d)
		g.put("often", "*/10 * * * *", object{"dag": object{
			"name": "etl", "priority": "high", "tags": object{"team": "b", "by": "schedule"},
		}})
		g.put("plain", "*/10 * * * *", nil)
		time.Sleep(time.Until(time.Now().Truncate(10*time.Minute).Add(10*time.Minute)) + 5*time.Second)
		now, _ := g.Want(http.StatusAccepted, "POST", "/schedules/often/run-now", nil)["run_id"].(string)
		time.Sleep(5 * time.Second)
		of := func(schedule string) string {
			for _, o := range g.occurrences(schedule, "") {
				if o["outcome"] == "ran" {
					return fmt.Sprint(o["run_id"])
				}
			}
			return ""
		}
		for run, want := range map[string]string{
			of("often"): "high map[by:schedule of:dag team:b]",
			now:         "high map[by:schedule of:dag team:b]",
			of("plain"): "low map[of:dag team:a]",
		} {
			node := g.Want(http.StatusOK, "GET", "/runs/"+run+"/nodes/b", nil)
			b := g.Want(http.StatusOK, "GET", fmt.Sprint("/jobs/", node["job_id"]), nil)
			if got := fmt.Sprint(b["priority"], " ", b["tags"]); got != want || b["status"] != "SUCCEEDED" {
				t.Errorf("a job of run %s has %s, want %s: %v", run, got, want, b)
			}
		}
	})
}

func TestScheduleOfDag_SkipsRunsWhoseParamsNoLongerFit(t *testing.T) {
	t.Parallel()
	ofGraphs(t, func(g *graphs) {
		g.Want(http.StatusCreated, "PUT", "/dags/etl", etl())
		g.put("often", "*/10 * * * *", object{"dag": object{"name": "etl", "params": object{"x": 7}}})
		time.Sleep(time.Until(time.Now().Truncate(10*time.Minute).Add(10*time.Minute)) + 5*time.Second)
		strict := etl()
		strict["params_schema"] = object{"properties": object{"x": object{"maximum": 5}}}
		g.Want(http.StatusOK, "PUT", "/dags/etl", strict)
		time.Sleep(10 * time.Minute)
		g.came("often", "ran SUCCEEDED", "skipped SKIPPED invalid_params")
		last := g.occurrences("often", "")[0]
		if want := "/params/x: the number is too large (of the dag's params_schema); " +
			"allowed: maximum 5"; last["why"] != want {
			t.Errorf("the occurrence is %v", last)
		}
	})
}

//proof:of 8
func TestScheduleOfDag_RunsAtEachNominalTime(t *testing.T) {
	t.Parallel()
	ofGraphs(t, func(g *graphs) {
		g.Want(http.StatusCreated, "PUT", "/dags/etl", etl())
		g.put("often", "*/10 * * * *", object{"dag": object{"name": "etl", "params": object{"x": 7}}})
		time.Sleep(time.Until(time.Now().Truncate(10*time.Minute).Add(20*time.Minute)) + 5*time.Second)
		g.came("often", "ran SUCCEEDED", "ran SUCCEEDED")
		for _, o := range g.occurrences("often", "") {
			id, _ := o["run_id"].(string)
			is := g.Want(http.StatusOK, "GET", "/runs/"+id, nil)
			if is["schedule"] != "often" || is["nominal_at"] != o["nominal_at"] || is["status"] != "SUCCEEDED" ||
				fmt.Sprint(is["params"]) != "map[x:7]" || is["dag_version"] != 1.0 {
				t.Errorf("the run is %v", is)
			}
			if late := story.At(t, is["started_at"]).Sub(story.At(t, o["nominal_at"])); late < 0 ||
				late > 100*time.Millisecond {
				t.Errorf("its first node started %s after its time", late)
			}
			if o["job_id"] != nil {
				t.Errorf("the occurrence is %v", o)
			}
			if code, _ := g.Call("GET", "/jobs/"+id, nil); code != http.StatusNotFound {
				t.Errorf("its row is shown as a job: %d", code)
			}
		}
		if list := g.Want(http.StatusOK, "GET", "/runs?schedule=often", nil)["items"].([]any); len(list) != 2 {
			t.Errorf("%d runs are listed", len(list))
		}
		for _, j := range g.Want(http.StatusOK, "GET", "/jobs?limit=200", nil)["items"].([]any) {
			if j.(object)["node"] == nil {
				t.Errorf("a job of no node is listed: %v", j)
			}
		}

		// A run takes the version that is newest at its time, even if it was promoted before.
		next := etl()
		next["params"] = object{"x": 1, "y": 2}
		g.Want(http.StatusOK, "PUT", "/dags/etl", next)
		time.Sleep(10 * time.Minute)
		newest := g.occurrences("often", "")[0]
		is := g.Want(http.StatusOK, "GET", "/runs/"+newest["run_id"].(string), nil)
		if is["dag_version"] != 2.0 || fmt.Sprint(is["params"]) != "map[x:7 y:2]" {
			t.Errorf("the newest run is %v", is)
		}

		code, answer := g.Call("DELETE", "/dags/etl", nil)
		if code != http.StatusConflict || answer["code"] != "wrong_state" ||
			!strings.Contains(fmt.Sprint(answer["detail"]), "often") {
			t.Errorf("deleting a dag in use answers %d %v", code, answer)
		}
		g.Want(http.StatusNoContent, "DELETE", "/schedules/often", nil)
		g.Want(http.StatusNoContent, "DELETE", "/dags/etl", nil)
	})
}

//proof:of 8
func TestScheduleOfDag_KeepsRunsFromOverlapping(t *testing.T) {
	t.Parallel()
	for overlap, want := range map[string][]string{
		"allow":      {"ran SUCCEEDED", "ran SUCCEEDED", "ran RUNNING", "ran RUNNING"},
		"skip":       {"ran SUCCEEDED", "skipped SKIPPED overlap", "skipped SKIPPED overlap", "ran RUNNING"},
		"buffer_one": {"ran SUCCEEDED", "ran RUNNING", "skipped SKIPPED overlap", "pending SCHEDULED overlap"},
		"buffer_all": {"ran SUCCEEDED", "ran RUNNING", "pending SCHEDULED overlap", "pending SCHEDULED overlap"},
		"cancel_running": {"ran CANCELLED run_cancelled", "ran CANCELLED run_cancelled", "ran CANCELLED run_cancelled",
			"ran RUNNING"},
	} {
		t.Run(overlap, func(t *testing.T) {
			t.Parallel()
			ofGraphs(t, func(g *graphs) {
				g.slow["a"] = 2*time.Minute + 20*time.Second
				g.Want(http.StatusCreated, "PUT", "/dags/etl", etl())
				g.put("s", "* * * * *", object{"overlap": overlap})
				time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(4*time.Minute)) + 30*time.Second)
				g.came("s", want...)
			})
		})
	}
}

func TestScheduleOfDag_CountsRunsAndFailures(t *testing.T) {
	t.Parallel()
	ofGraphs(t, func(g *graphs) {
		g.Want(http.StatusCreated, "PUT", "/dags/etl", etl())
		g.put("twice", "* * * * *", object{"calendar": object{"cron": "* * * * *", "max_runs": 2}})
		time.Sleep(5 * time.Minute)
		if got := g.sayOf("twice"); len(got) < 2 || got[0] != "ran SUCCEEDED" || got[1] != "ran SUCCEEDED" ||
			slices.Contains(got[2:], "ran SUCCEEDED") {
			t.Errorf("a schedule of two runs came to %q", got)
		}
		if v := g.Want(http.StatusOK, "GET", "/schedules/twice", nil); v["ended_by"] != "max_runs" {
			t.Errorf("the schedule is %v", v)
		}
		g.fails["b"] = true
		g.put("fails", "* * * * *", object{"pause_after_failures": 3})
		time.Sleep(10 * time.Minute)
		failed := g.sayOf("fails")
		if n := len(slices.DeleteFunc(failed, func(s string) bool { return s != "ran FAILED node_failed" })); n != 3 {
			t.Errorf("%d runs failed before the pause: %q", n, g.sayOf("fails"))
		}
		v := g.Want(http.StatusOK, "GET", "/schedules/fails", nil)
		if p, _ := v["paused"].(object); p == nil || p["by"] != "punctual" ||
			!strings.Contains(p["reason"].(string), "3 runs in a row") {
			t.Errorf("the schedule is %v", v)
		}
		dead := g.Want(http.StatusOK, "GET", "/dead-letters?limit=200", nil)["items"].([]any)
		if len(dead) != 3 {
			t.Errorf("there are %d dead letters: of each run that of its node", len(dead))
		}

		// A run that is retried has ended for its schedule; its occurrence shows how it goes on.
		g.fails["b"] = false
		id := g.occurrences("fails", "&outcome=ran")[0]["run_id"].(string)
		g.Want(http.StatusOK, "POST", "/runs/"+id+"/retry", object{"reason": "it is mended"})
		time.Sleep(time.Second)
		if o := g.occurrences("fails", "&outcome=ran")[0]; o["status"] != "SUCCEEDED" {
			t.Errorf("the occurrence is %v", o)
		}
	})
}

func TestScheduleOfDag_HeedsPausesEditsAndWindows(t *testing.T) {
	t.Parallel()
	ofGraphs(t, func(g *graphs) {
		g.Want(http.StatusCreated, "PUT", "/dags/etl", etl())
		g.put("s", "*/10 * * * *", nil)
		start := time.Now().Truncate(10 * time.Minute)
		until := func(d time.Duration) { time.Sleep(time.Until(start.Add(d))) }
		until(11 * time.Minute)
		g.Want(http.StatusOK, "POST", "/schedules/s/pause", object{"reason": "a look at it"})
		until(25 * time.Minute)
		g.came("s", "ran SUCCEEDED", "pending SCHEDULED paused")
		g.Want(http.StatusOK, "POST", "/schedules/s/resume", object{"missed": "all"})
		time.Sleep(10 * time.Second)
		g.came("s", "ran SUCCEEDED", "ran SUCCEEDED")
		g.Want(http.StatusOK, "PATCH", "/schedules/s", object{"calendar": object{"cron": "5,15,25,35,45,55 * * * *"}})
		until(36 * time.Minute)
		got := g.sayOf("s")
		if len(got) != 4 || got[2] != "superseded SKIPPED edited" || got[3] != "ran SUCCEEDED" {
			t.Errorf("after the edit: %q", got)
		}
		// The schedule's dag is replaced by a job, and the job by the dag.
		g.Want(http.StatusOK, "PATCH", "/schedules/s", object{"job": object{"task": "echo"}})
		until(46 * time.Minute)
		if o := g.occurrences("s", "")[0]; o["job_id"] == nil || o["run_id"] != nil || o["status"] != "SUCCEEDED" {
			t.Errorf("the occurrence of a job is %v", o)
		}
		g.Want(http.StatusOK, "PATCH", "/schedules/s", object{"dag": object{"name": "etl", "version": 1}})
		until(56 * time.Minute)
		if o := g.occurrences("s", "")[0]; o["run_id"] == nil || o["status"] != "SUCCEEDED" {
			t.Errorf("the occurrence of a run is %v", o)
		}
		g.Want(http.StatusCreated, "PUT", "/pauses/all", object{"reason": "everything"})
		until(66 * time.Minute)
		if o := g.occurrences("s", "")[0]; o["outcome"] == "ran" &&
			story.At(t, o["nominal_at"]).After(start.Add(time.Hour)) {
			t.Errorf("it ran under a pause of everything: %v", o)
		}
	})
}

func TestScheduleOfDag_RunsWhenAsked(t *testing.T) {
	t.Parallel()
	ofGraphs(t, func(g *graphs) {
		g.Want(http.StatusCreated, "PUT", "/dags/etl", etl())
		g.put("yearly", "0 0 1 1 *", object{"overlap": "skip"})
		one := g.Want(http.StatusAccepted, "POST", "/schedules/yearly/run-now", nil)
		if one["schedule"] != "yearly" || one["nominal_at"] != nil || one["dag"] != "etl" {
			t.Errorf("the run is %v", one)
		}
		time.Sleep(time.Second)
		if is := g.Want(http.StatusOK, "GET", "/runs/"+one["run_id"].(string), nil); is["status"] != "SUCCEEDED" {
			t.Errorf("the run is %v", is)
		}
		list := g.occurrences("yearly", "")
		if len(list) != 1 || list[0]["manual"] != true || list[0]["run_id"] != one["run_id"] ||
			list[0]["status"] != "SUCCEEDED" {
			t.Errorf("the occurrences are %v", list)
		}
	})
}
