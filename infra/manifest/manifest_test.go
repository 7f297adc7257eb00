package manifest

import (
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"punctual/shared/contract"
)

func pools() []Pool {
	pool := func(name string, milli, mib int, drain time.Duration) Pool {
		p := Pool{
			Name: name, Image: "registry/worker:1", Arch: "arm64", Machines: []any{"c", "m"}, Least: 3, Most: 60,
			Slots: 25, Milli: milli, MiB: mib, Drain: drain, Region: "us-east-1", Asks: 30,
			Env: []Var{{"PUNCTUAL_PREFIX", "here"}, {"PUNCTUAL_BUCKET", "payloads"}},
		}
		for _, priority := range contract.Priorities {
			p.Queues = append(p.Queues, Queue{priority, "https://sqs/1/" + contract.FiringQueue(name, priority)})
		}
		return p
	}
	return []Pool{pool("short", 2000, 4096, 55*time.Second), pool("long", 4000, 8192, 12*time.Hour)}
}

// everything lists all objects of a deployment's cluster.
func everything() []Object {
	all := append([]Object{NamespaceObject(), ScalerIdentity(), LogShipperNamespace()}, Isolation()...)
	all = append(all, LogShipperObjects("us-east-1", "/punctual/here-worker")...)
	for _, p := range pools() {
		all = append(append(append(all, p.NodePool()), p.Objects()...), p.Scaler("Punctual/dev", "slots_wanted"))
	}
	return all
}

// at walks into an object by a path such as "spec.template.spec.containers.0.name".
func at(t *testing.T, o Object, path string) any {
	t.Helper()
	var v any = o
	for step := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case Object:
			v = x[step]
		case []any:
			var i int
			if _, err := fmt.Sscan(step, &i); err != nil || i >= len(x) {
				t.Fatalf("%s: there is no %s", path, step)
			}
			v = x[i]
		}
	}
	return v
}

//proof:of 128
func TestWorker_GetsTheEnvironmentThatItReads(t *testing.T) {
	t.Parallel()
	for _, p := range pools() {
		set := map[string]string{}
		for _, v := range at(t, p.Deployment(), "spec.template.spec.containers.0.env").([]any) {
			set[v.(Object)["name"].(string)] = v.(Object)["value"].(string)
		}
		env, err := contract.LoadEnv(func(name string) (string, bool) { v, ok := set[name]; return v, ok },
			"PUNCTUAL_BUCKET")
		if err != nil {
			t.Fatal(err)
		}
		if env.Prefix != "here" || env.Bucket != "payloads" || env.Pool != p.Name || env.Slots != 25 ||
			time.Duration(env.DrainSeconds)*time.Second != p.Drain {
			t.Errorf("workers of %s read %+v", p.Name, env)
		}
		if set["GOMEMLIMIT"] != fmt.Sprintf("%dMiB", p.MiB*9/10) {
			t.Errorf("workers of %s may use %s of %d MiB", p.Name, set["GOMEMLIMIT"], p.MiB)
		}
	}
}

//proof:of S29
func TestPod_HasTimeToDrainBeforeItsNodeEnds(t *testing.T) {
	t.Parallel()
	for _, drain := range []time.Duration{10 * time.Second, 55 * time.Second, 2 * time.Hour, 12 * time.Hour,
		24 * time.Hour} {
		p := pools()[0]
		p.Drain = drain
		grace := time.Duration(at(t, p.Deployment(),
			"spec.template.spec.terminationGracePeriodSeconds").(int)) * time.Second
		if grace < drain+20*time.Second {
			t.Errorf("a pod that drains for %s is killed after %s", drain, grace)
		}
		span := func(path string) time.Duration {
			d, err := time.ParseDuration(at(t, p.NodePool(), path).(string))
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		node, life := span("spec.template.spec.terminationGracePeriod"), span("spec.template.spec.expireAfter")
		if node < grace+drainAnnounce {
			t.Errorf("a node waits %s for pods that take %s", node, grace)
		}
		if life <= 0 || life+node > 21*24*time.Hour {
			t.Errorf("a node lives %s and then waits %s: AWS ends it after 21 days", life, node)
		}
	}
}

func TestNodePool_KeepsNodesOfLongJobsUntilTheirEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pool        Pool
		consolidate string
		keep        any
	}{{pools()[0], "WhenEmptyOrUnderutilized", nil}, {pools()[1], "WhenEmpty", "true"}} {
		if got := at(t, c.pool.NodePool(), "spec.disruption.consolidationPolicy"); got != c.consolidate {
			t.Errorf("nodes of %s are consolidated %v; want %s", c.pool.Name, got, c.consolidate)
		}
		if got := at(t, c.pool.Deployment(),
			"spec.template.metadata.annotations").(Object)["karpenter.sh/do-not-disrupt"]; got != c.keep {
			t.Errorf("pods of %s say do-not-disrupt: %v; want %v", c.pool.Name, got, c.keep)
		}
	}
}

//proof:of 98
func TestPool_RunsOnItsOwnNodesOnly(t *testing.T) {
	t.Parallel()
	for _, p := range pools() {
		node, pod := at(t, p.NodePool(), "spec.template").(Object), at(t, p.Deployment(), "spec.template.spec").(Object)
		taint, toleration := at(t, node, "spec.taints.0").(Object), at(t, pod, "tolerations.0").(Object)
		if taint["key"] != toleration["key"] || taint["value"] != toleration["value"] ||
			taint["effect"] != toleration["effect"] || taint["value"] != p.Name {
			t.Errorf("nodes of %s keep others away by %v; its pods bear %v", p.Name, taint, toleration)
		}
		for key, value := range at(t, node, "metadata.labels").(Object) {
			if at(t, pod, "nodeSelector").(Object)[key] != value {
				t.Errorf("pods of %s may run elsewhere than on %s=%s", p.Name, key, value)
			}
		}
	}
}

//proof:of 121
func TestWorker_HasNoMoreRightsThanItNeeds(t *testing.T) {
	t.Parallel()
	for _, p := range pools() {
		pod := at(t, p.Deployment(), "spec.template.spec").(Object)
		for path, want := range map[string]any{
			"securityContext.runAsNonRoot":                          true,
			"securityContext.runAsUser":                             65532,
			"securityContext.seccompProfile.type":                   "RuntimeDefault",
			"containers.0.securityContext.allowPrivilegeEscalation": false,
			"containers.0.securityContext.readOnlyRootFilesystem":   true,
			"containers.0.securityContext.capabilities.drop.0":      "ALL",
			"automountServiceAccountToken":                          false,
			"serviceAccountName":                                    p.App(),
		} {
			if got := at(t, pod, path); got != want {
				t.Errorf("%s: %s is %v; want %v", p.Name, path, got, want)
			}
		}
		if pod["volumes"] != nil || pod["hostNetwork"] != nil {
			t.Errorf("pods of %s reach into their host", p.Name)
		}
	}
	if got := at(t, NamespaceObject(),
		"metadata.labels").(Object)["pod-security.kubernetes.io/enforce"]; got != "restricted" {
		t.Errorf("the workers' namespace enforces %v", got)
	}
}

// A rollout of pods that crash goes no further than its first ones.
func TestWorker_IsReplacedOnlyByOneThatWorks(t *testing.T) {
	t.Parallel()
	for _, p := range pools() {
		for path, want := range map[string]any{
			"minReadySeconds": 30, "progressDeadlineSeconds": 900,
			"strategy.rollingUpdate.maxUnavailable":                     0,
			"template.spec.containers.0.readinessProbe.httpGet.path":    "/ready",
			"template.spec.containers.0.readinessProbe.httpGet.port":    contract.HealthPort,
			"template.spec.containers.0.livenessProbe.httpGet.path":     "/live",
			"template.spec.containers.0.livenessProbe.httpGet.port":     contract.HealthPort,
			"template.spec.containers.0.livenessProbe.failureThreshold": 3,
			"template.spec.containers.0.readinessProbe.timeoutSeconds":  5,
			"template.spec.containers.0.readinessProbe.periodSeconds":   10,
		} {
			if got := at(t, p.Deployment(), "spec."+path); got != want {
				t.Errorf("%s: %s is %v; want %v", p.Name, path, got, want)
			}
		}
	}
}

// Where the log shipper has come to outlives its pod: the next one sends no line twice, and leaves none out.
func TestLogShipper_KeepsItsPositionOnTheHost(t *testing.T) {
	t.Parallel()
	objects := LogShipperObjects("us-east-1", "/punctual/p-worker")
	lines := at(t, objects[0], "data").(Object)["fluent-bit.conf"].(string)
	pod := at(t, objects[1], "spec.template.spec").(Object)
	db := regexp.MustCompile(`(?m)^  DB (\S+)$`).FindStringSubmatch(lines)
	if db == nil || !strings.Contains(lines, "\n  Read_from_Head On\n") {
		t.Fatalf("it keeps no position, or leaves out what was written before it:\n%s", lines)
	}
	mounted := ""
	for _, m := range at(t, pod, "containers.0.volumeMounts").([]any) {
		if m := m.(Object); strings.HasPrefix(db[1], m["mountPath"].(string)+"/") && m["readOnly"] == false {
			mounted = m["name"].(string)
		}
	}
	for _, v := range pod["volumes"].([]any) {
		if v := v.(Object); v["name"] == mounted && v["hostPath"] != nil {
			return
		}
	}
	t.Errorf("%s lies in %q, which is not the host's", db[1], mounted)
}

//proof:of 121
func TestWorker_AcceptsNoConnections(t *testing.T) {
	t.Parallel()
	switchedOn, policy := Isolation()[0], at(t, Isolation()[1], "spec").(Object)
	if at(t, switchedOn, "data").(Object)["enable-network-policy-controller"] != "true" || at(t, switchedOn,
		"metadata.name") != "amazon-vpc-cni" || at(t, switchedOn, "metadata.namespace") != "kube-system" {
		t.Errorf("policies are heeded by %v", switchedOn)
	}
	if len(at(t, policy, "podSelector").(Object)) != 0 || !reflect.DeepEqual(policy["policyTypes"], []any{"Ingress"}) ||
		policy["ingress"] != nil {
		t.Errorf("who reaches workers: %v", policy)
	}
	if at(t, Isolation()[1], "metadata.namespace") != Namespace {
		t.Error("it is about other pods")
	}
}

func TestWorker_GetsItsSizeAndNoMore(t *testing.T) {
	t.Parallel()
	for i, want := range []Object{{"cpu": "2000m", "memory": "4096Mi"}, {"cpu": "4000m", "memory": "8192Mi"}} {
		got := at(t, pools()[i].Deployment(), "spec.template.spec.containers.0.resources").(Object)
		if !reflect.DeepEqual(got["requests"], any(want)) || !reflect.DeepEqual(got["limits"], any(want)) {
			t.Errorf("%s: %v; want %v, asked for and at most", pools()[i].Name, got, want)
		}
	}
}

//proof:of 190 198
func TestPool_IsSpreadAndKeptByABudget(t *testing.T) {
	t.Parallel()
	for _, p := range pools() {
		var over []string
		labels := at(t, p.Deployment(), "spec.template.metadata.labels").(Object)
		for _, c := range at(t, p.Deployment(), "spec.template.spec.topologySpreadConstraints").([]any) {
			over = append(over, c.(Object)["topologyKey"].(string))
		}
		if !slices.Equal(over, []string{"topology.kubernetes.io/zone", "kubernetes.io/hostname"}) {
			t.Errorf("%s is spread over %v", p.Name, over)
		}
		for key, value := range at(t, p.Budget(), "spec.selector.matchLabels").(Object) {
			if labels[key] != value {
				t.Errorf("the budget of %s is for %s=%v, which its pods are not", p.Name, key, value)
			}
		}
		if _, set := at(t, p.Deployment(), "spec").(Object)["replicas"]; set {
			t.Errorf("a deploy would set how many pods %s has, against the scaler", p.Name)
		}
		if got := at(t, p.Deployment(), "spec.strategy.rollingUpdate.maxUnavailable"); got != 0 {
			t.Errorf("a rollout of %s takes %v pods away before others are there", p.Name, got)
		}
	}
}

//proof:of 98 125 126 127 S29
func TestPool_IsScaledByItsQueuesAndTheForecast(t *testing.T) {
	t.Parallel()
	for _, p := range pools() {
		o := p.Scaler("Punctual/dev", "slots_wanted")
		var queues []string
		for _, trigger := range at(t, o, "spec.triggers").([]any) {
			m := at(t, trigger.(Object), "metadata").(Object)
			switch trigger.(Object)["type"] {
			case "aws-sqs-queue":
				queues = append(queues, m["queueURL"].(string))
				if m["scaleOnInFlight"] != "true" || m["scaleOnDelayed"] != "false" {
					t.Errorf("%v counts in flight: %v, delayed: %v", m["queueURL"], m["scaleOnInFlight"],
						m["scaleOnDelayed"])
				}
			case "aws-cloudwatch":
				if m["namespace"] != "Punctual/dev" || m["metricName"] != "slots_wanted" ||
					m["dimensionName"] != "pool" || m["dimensionValue"] != p.Name || m["metricStat"] != "Maximum" {
					t.Errorf("the look ahead of %s is %v", p.Name, m)
				}
			}
			if at(t, trigger.(Object), "authenticationRef.name") != at(t, ScalerIdentity(), "metadata.name") {
				t.Errorf("%v asks as nobody", trigger)
			}
		}
		for i, priority := range contract.Priorities {
			if i >= len(queues) || !strings.HasSuffix(queues[i], "/"+contract.FiringQueue(p.Name, priority)) {
				t.Errorf("%s is scaled by %v", p.Name, queues)
				break
			}
		}
		if got := at(t, o, "spec.advanced.scalingModifiers.target"); got != "25" {
			t.Errorf("a pod of %s is taken to do %v at once; it has 25 slots", p.Name, got)
		}
		if at(t, o, "spec.minReplicaCount") != 3 || at(t, o, "spec.maxReplicaCount") != 60 ||
			at(t, o, "spec.fallback.replicas") != 30 {
			t.Errorf("%s has %v", p.Name, at(t, o, "spec"))
		}
	}
	if at(t, ScalerIdentity(), "spec.podIdentity.identityOwner") != "keda" {
		t.Error("the scaler borrows the workers' role")
	}
}

func TestLogShipper_SendsLinesOfWorkersUnchanged(t *testing.T) {
	t.Parallel()
	objects := LogShipperObjects("eu-west-1", "/punctual/here-worker")
	lines := at(t, objects[0], "data").(Object)["fluent-bit.conf"].(string)
	for _, want := range []string{"log_key log\n", "log_format json/emf\n", "log_group_name /punctual/here-worker\n",
		"region eu-west-1\n"} {
		if !strings.Contains(lines, want) {
			t.Errorf("the log shipper's configuration lacks %q", want)
		}
	}
	_, after, _ := strings.Cut(lines, "Path ")
	pattern, _, _ := strings.Cut(after, "\n")
	for _, p := range pools() { // the kubelet names a container's log <pod>_<namespace>_<container>-<id>.log
		container := at(t, p.Deployment(), "spec.template.spec.containers.0.name").(string)
		log := "/var/log/containers/" + p.App() + "-7d9c4-x2x2x_" + Namespace + "_" + container + "-0123.log"
		if found, err := path.Match(pattern, log); err != nil || !found {
			t.Errorf("%s is not found by %s", log, pattern)
		}
	}
	mounts := at(t, objects[1], "spec.template.spec.containers.0.volumeMounts").([]any)
	if m := mounts[0].(Object); m["mountPath"] != "/var/log" || m["readOnly"] != true {
		t.Errorf("the log shipper's first mount is %v", m)
	}
}
