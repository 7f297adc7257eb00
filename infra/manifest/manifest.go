package manifest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"punctual/shared/contract"
)

// Object is a Kubernetes object.
type Object = map[string]any

// Namespace is where the workers live.
const Namespace = "punctual"

// Pool says how the workers of one pool run.
type Pool struct {
	Name        string // of the pool in the contract
	Image       string
	Arch        string // of the nodes: arm64 or amd64
	Machines    []any  // categories of EC2 instances: c, m, t …
	Least, Most int    // pods
	Hold        bool   // none, whatever there is to do
	Asks        int    // seconds between two questions of the scaler to queues and metrics
	Slots       int    // attempts that a pod runs at once
	Milli, MiB  int    // CPU in thousandths and memory of a pod
	Drain       time.Duration
	Env         []Var
	Queues      []Queue // that the pool is scaled by, most urgent first
	Region      string
}

// Var is a variable of a worker's environment.
type Var struct{ Name, Value string }

// Queue is a queue that a pool is scaled by.
type Queue struct{ Priority, URL string }

// App is the name of everything of a pool.
func (p Pool) App() string { return "worker-" + p.Name }

// nodeLabel marks the nodes of a pool.
const nodeLabel = "punctual.dev/pool"

func (p Pool) labels() Object {
	return Object{"app.kubernetes.io/name": p.App(), "app.kubernetes.io/part-of": "punctual"}
}

func (p Pool) meta() Object {
	return Object{"name": p.App(), "namespace": Namespace, "labels": p.labels()}
}

func (p Pool) selector() Object {
	return Object{"matchLabels": Object{"app.kubernetes.io/name": p.App()}}
}

// keeps says whether a pool's jobs run too long for its pods to be moved to a cheaper node.
func (p Pool) keeps() bool { return p.Drain > 10*time.Minute }

// nonRoot is the user of the worker's image.
const nonRoot = 65532

// memoryShare is how much of a pod's memory, in percent, Go tries not to exceed: collecting more
// often is better than being killed.
const memoryShare = 90

// graceAfter is what a worker gets beyond its drain: 5 s for the calls that let go of what still
// runs, as package worker has them, and the rest for the kubelet.
const graceAfter = 30 * time.Second

func (p Pool) grace() time.Duration { return p.Drain + graceAfter }

// Probes of a worker, in seconds. It is ready once it polls and reaches the table. Nothing routes
// to it: being ready is what a rollout waits for, so that one of pods that crash, or that AWS
// refuses, goes no further than its first pods.
const (
	probeEvery   = 10
	probeFails   = 3
	settledAfter = 30  // a pod counts once it was ready for so long
	rolloutFails = 900 // without progress for so long a rollout is reported as failed
)

func probe(path string) Object {
	return Object{"httpGet": Object{"path": path, "port": contract.HealthPort}, "periodSeconds": probeEvery,
		"timeoutSeconds": 5, "failureThreshold": probeFails}
}

// unprivileged is a container that can gain nothing and write nothing.
func unprivileged() Object {
	return Object{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
		"capabilities": Object{"drop": []any{"ALL"}}}
}

// NamespaceObject is the namespace, in which only restricted pods may run.
func NamespaceObject() Object {
	return Object{"apiVersion": "v1", "kind": "Namespace", "metadata": Object{"name": Namespace, "labels": Object{
		"pod-security.kubernetes.io/enforce": "restricted",
	}}}
}

// Isolation are the objects that keep every pod of the workers from being reached, by one another
// as by anybody else: they call, and nothing calls them. The first has Auto Mode heed the second.
func Isolation() []Object {
	return []Object{
		{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": Object{"name": "amazon-vpc-cni",
				"namespace": "kube-system"},
			"data": Object{"enable-network-policy-controller": "true"},
		},
		{
			"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": Object{"name": "unreachable",
				"namespace": Namespace},
			"spec": Object{"podSelector": Object{}, "policyTypes": []any{"Ingress"}},
		},
	}
}

// ServiceAccount is the identity of a pool's pods for AWS.
func (p Pool) ServiceAccount() Object {
	return Object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": p.meta(),
		"automountServiceAccountToken": false}
}

// Deployment runs the pods.
func (p Pool) Deployment() Object {
	env := make([]any, 0, len(p.Env)+3)
	for _, v := range append(append([]Var{}, p.Env...),
		Var{"GOMEMLIMIT", fmt.Sprintf("%dMiB", p.MiB*memoryShare/100)},
		Var{"PUNCTUAL_POOL", p.Name}, Var{"PUNCTUAL_SLOTS", fmt.Sprint(p.Slots)}, Var{"PUNCTUAL_DRAIN_SECONDS",
			fmt.Sprint(int(p.Drain.Seconds()))},
	) {
		env = append(env, Object{"name": v.Name, "value": v.Value})
	}
	annotations := Object{}
	if p.keeps() {
		annotations["karpenter.sh/do-not-disrupt"] = "true"
	}
	// Pods are spread evenly if possible: if a zone is gone, the others take over its pods.
	spread := func(key string) Object {
		return Object{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway",
			"labelSelector": p.selector()}
	}
	selector, tolerations := p.OnNodesOf()
	size := Object{"cpu": fmt.Sprintf("%dm", p.Milli), "memory": fmt.Sprintf("%dMi", p.MiB)}
	return Object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": p.meta(),
		"spec": Object{ // without replicas: how many there are is the scaler's to say
			"selector":        p.selector(),
			"minReadySeconds": settledAfter, "progressDeadlineSeconds": rolloutFails,
			"strategy": Object{"type": "RollingUpdate", "rollingUpdate": Object{"maxUnavailable": 0,
				"maxSurge": "25%"}},
			"template": Object{
				"metadata": Object{"labels": p.labels(), "annotations": annotations},
				"spec": Object{
					"serviceAccountName": p.App(), "automountServiceAccountToken": false, "enableServiceLinks": false,
					"terminationGracePeriodSeconds": int(p.grace().Seconds()),
					"nodeSelector":                  selector,
					"tolerations":                   tolerations,
					"topologySpreadConstraints": []any{spread("topology.kubernetes.io/zone"),
						spread("kubernetes.io/hostname")},
					"securityContext": Object{
						"runAsNonRoot": true, "runAsUser": nonRoot, "runAsGroup": nonRoot,
						"seccompProfile": Object{"type": "RuntimeDefault"},
					},
					"containers": []any{Object{
						"name": "worker", "image": p.Image, "env": env,
						"resources":       Object{"requests": size, "limits": size},
						"securityContext": unprivileged(),
						"readinessProbe":  probe("/ready"),
						"livenessProbe":   probe("/live"),
					}},
				},
			},
		},
	}
}

// Budget keeps most of a pool there while nodes come and go.
func (p Pool) Budget() Object {
	return Object{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": p.meta(), "spec": Object{
		"maxUnavailable": "25%", "selector": p.selector(), "unhealthyPodEvictionPolicy": "AlwaysAllow",
	}}
}

// Life of nodes. EKS Auto Mode ends them after 21 days, draining included, whatever runs there:
// so each pool's nodes begin to end early enough that every pod drains in full before.
const (
	nodeLifeMost  = 21 * 24 * time.Hour
	nodeLife      = 14 * 24 * time.Hour // of short pools: so nodes never run an image much older
	drainAnnounce = time.Hour           // a node waits so much longer than its pods need
)

// NodePool says which nodes the pool gets, and when they end.
func (p Pool) NodePool() Object {
	life := min(nodeLife, nodeLifeMost-p.nodeDrain())
	disruption := Object{"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "5m",
		"budgets": []any{Object{"nodes": "10%"}}}
	if p.keeps() {
		// No node that works is given up for a cheaper one, and one at a time for a newer image.
		life = nodeLifeMost - p.nodeDrain()
		disruption = Object{"consolidationPolicy": "WhenEmpty", "consolidateAfter": "10m",
			"budgets": []any{Object{"nodes": "1"}}}
	}
	need := func(key string, values ...any) Object {
		return Object{"key": key, "operator": "In", "values": values}
	}
	return Object{
		"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": Object{"name": p.App()},
		"spec": Object{
			"template": Object{
				"metadata": Object{"labels": Object{nodeLabel: p.Name}},
				"spec": Object{
					"nodeClassRef": Object{"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"},
					"requirements": []any{
						need("kubernetes.io/arch", p.Arch), need("karpenter.sh/capacity-type", "on-demand"),
						need("eks.amazonaws.com/instance-category", p.Machines...),
						Object{"key": "eks.amazonaws.com/instance-generation", "operator": "Gt",
							"values": []any{p.generation()}},
					},
					"taints":                 []any{Object{"key": nodeLabel, "value": p.Name, "effect": "NoSchedule"}},
					"expireAfter":            hours(life),
					"terminationGracePeriod": hours(p.nodeDrain()),
				},
			},
			"limits": Object{"cpu": fmt.Sprint(max(2, (p.Most*p.Milli+999)/1000*2)), "memory": fmt.Sprintf("%dMi",
				max(4096, p.Most*p.MiB*2))},
			"disruption": disruption,
		},
	}
}

// generation is the one that machines must be younger than: the 6th has ARM in c and m, the 4th in t.
func (p Pool) generation() string {
	if slices.Contains(p.Machines, any("t")) {
		return "3"
	}
	return "5"
}

// OnNodesOf lets pods of others run on the nodes of a pool, and on no others: one machine less.
func (p Pool) OnNodesOf() (selector Object, tolerations []any) {
	return Object{nodeLabel: p.Name, "kubernetes.io/arch": p.Arch},
		[]any{Object{"key": nodeLabel, "operator": "Equal", "value": p.Name, "effect": "NoSchedule"}}
}

// nodeDrain is how long a node waits for its pods: longer than any of them may take.
func (p Pool) nodeDrain() time.Duration {
	return (p.Drain + drainAnnounce).Round(time.Hour) + time.Hour
}

func hours(d time.Duration) string { return fmt.Sprintf("%dh", int(d.Hours())) }

// ScalerIdentity lets the scaler ask AWS as itself.
func ScalerIdentity() Object {
	return Object{"apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication",
		"metadata": Object{"name": "scaler", "namespace": Namespace},
		"spec":     Object{"podIdentity": Object{"provider": "aws", "identityOwner": "keda"}}}
}

// Scaler sets how many pods there are: enough for what is due and waits or runs, in all queues
// together, or for what the look ahead wants, whichever is more. What is delayed in a queue is
// not counted: it may be due in 14 minutes only, and the look ahead knows when.
func (p Pool) Scaler(metricNamespace, wantedMetric string) Object {
	identity := Object{"name": "scaler"}
	var triggers []any
	var names []string
	for _, q := range p.Queues {
		names = append(names, q.Priority)
		triggers = append(triggers, Object{
			"type": "aws-sqs-queue", "name": q.Priority, "authenticationRef": identity,
			"metadata": Object{"queueURL": q.URL, "queueLength": fmt.Sprint(p.Slots), "awsRegion": p.Region,
				"scaleOnInFlight": "true", "scaleOnDelayed": "false"},
		})
	}
	triggers = append(triggers, Object{
		"type": "aws-cloudwatch", "name": wanted, "authenticationRef": identity,
		"useCachedMetrics": true, // each question is charged, and the autoscaler would ask every 15 s
		"metadata": Object{
			"namespace": metricNamespace, "metricName": wantedMetric, "dimensionName": "pool", "dimensionValue": p.Name,
			"targetMetricValue": fmt.Sprint(p.Slots), "minMetricValue": "0", "ignoreNullValues": "true",
			"metricStat": "Maximum", "metricStatPeriod": "60", "metricCollectionTime": "300", "awsRegion": p.Region,
		},
	})
	meta := p.meta()
	if p.Hold {
		meta["annotations"] = Object{"autoscaling.keda.sh/paused-replicas": "0"}
	}
	return Object{
		"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": meta,
		"spec": Object{
			"scaleTargetRef":  Object{"name": p.App()},
			"minReplicaCount": p.Least, "maxReplicaCount": p.Most,
			"pollingInterval": p.Asks, "cooldownPeriod": 300,
			"fallback": Object{"failureThreshold": 5, "replicas": max(p.Least, (p.Most+1)/2),
				"behavior": "scalingModifiers"},
			"advanced": Object{
				"scalingModifiers": Object{"formula": formula(names), "target": fmt.Sprint(p.Slots),
					"metricType": "AverageValue"},
				"horizontalPodAutoscalerConfig": Object{"behavior": Object{
					"scaleUp": Object{"stabilizationWindowSeconds": 0, "policies": []any{Object{"type": "Percent",
						"value": 100, "periodSeconds": 15}, Object{"type": "Pods", "value": 4, "periodSeconds": 15}}},
					"scaleDown": Object{"stabilizationWindowSeconds": 300,
						"policies": []any{Object{"type": "Percent", "value": 25, "periodSeconds": 60}}},
				}},
			},
			"triggers": triggers,
		},
	}
}

// wanted names the look ahead among the sources.
const wanted = "wanted"

// formula is what there is to do: what all queues hold, or what the look ahead wants. A source
// that did not answer for some time is nil and counts nothing. With none left it is nil, and the
// scaler, blind, falls back to half of the most.
func formula(queues []string) string {
	all := strings.Join(append(slices.Clone(queues), wanted), " ?? ")
	held := make([]string, len(queues))
	for i, q := range queues {
		held[i] = "(" + q + " ?? 0)"
	}
	return fmt.Sprintf("(%s) == nil ? nil : max(%s, (%s ?? 0))", all, strings.Join(held, " + "), wanted)
}

// Objects lists all objects of the pool but its nodes, in the order in which they can be made.
func (p Pool) Objects() []Object {
	return []Object{p.ServiceAccount(), p.Deployment(), p.Budget()}
}
