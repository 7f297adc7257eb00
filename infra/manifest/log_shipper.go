package manifest

import "strings"

// LogShipper sends the log lines of workers to CloudWatch. The constants are its namespace and its service account.
const LogShipper = "punctual-courier"

// fluentBitImage is Fluent Bit as AWS builds it, pinned.
const fluentBitImage = "public.ecr.aws/aws-observability/aws-for-fluent-bit:3.4.12"

// LogShipperNamespace is apart from the workers' one: the log shipper reads the nodes' logs, which no
// restricted pod may.
func LogShipperNamespace() Object {
	return Object{"apiVersion": "v1", "kind": "Namespace", "metadata": Object{"name": LogShipper, "labels": Object{
		"pod-security.kubernetes.io/enforce": "privileged",
	}}}
}

// fluentBitConfig take each line as a worker wrote it, nothing around it: CloudWatch finds metrics
// only in lines that are wholly JSON.
func fluentBitConfig(region, group string) string {
	return strings.Join([]string{
		"[SERVICE]",
		"  Flush 2",
		"  Log_Level warn",
		"[INPUT]",
		"  Name tail",
		"  Tag worker.*",
		"  Path /var/log/containers/worker-*_" + Namespace + "_worker-*.log",
		"  multiline.parser cri",
		"  DB /state/positions.db",
		"  Read_from_Head On",
		"  Refresh_Interval 5",
		"  Rotate_Wait 30",
		"  Mem_Buf_Limit 50MB",
		"  Skip_Long_Lines On",
		"[OUTPUT]",
		"  Name cloudwatch_logs",
		"  Match worker.*",
		"  region " + region,
		"  log_group_name " + group,
		"  log_stream_prefix pod-",
		"  log_key log",
		"  log_format json/emf",
		"  auto_create_group false",
		"  Retry_Limit 20",
	}, "\n") + "\n"
}

// LogShipperObjects run the log shipper on every node of a pool, and nowhere else. Its service account
// is made with its role.
func LogShipperObjects(region, group string) []Object {
	labels := Object{"app.kubernetes.io/name": LogShipper, "app.kubernetes.io/part-of": "punctual"}
	meta := Object{"name": LogShipper, "namespace": LogShipper, "labels": labels}
	onHost := func(name, path, kind string) Object {
		return Object{"name": name, "hostPath": Object{"path": path, "type": kind}}
	}
	mount := func(name, path string, readOnly bool) Object {
		return Object{"name": name, "mountPath": path, "readOnly": readOnly}
	}
	return []Object{
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta,
			"data": Object{"fluent-bit.conf": fluentBitConfig(region, group)}},
		{
			"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta,
			"spec": Object{
				"selector":       Object{"matchLabels": Object{"app.kubernetes.io/name": LogShipper}},
				"updateStrategy": Object{"type": "RollingUpdate", "rollingUpdate": Object{"maxUnavailable": "25%"}},
				"template": Object{
					// What is delivered where changes with the configuration, so its pods do as well.
					"metadata": Object{"labels": labels, "annotations": Object{"punctual.dev/log-group": group}},
					"spec": Object{
						"serviceAccountName": LogShipper, "enableServiceLinks": false,
						"priorityClassName":             "system-node-critical", // it must run even on a full node
						"terminationGracePeriodSeconds": 30,
						"affinity": Object{
							"nodeAffinity": Object{"requiredDuringSchedulingIgnoredDuringExecution": Object{
								"nodeSelectorTerms": []any{
									Object{"matchExpressions": []any{Object{"key": nodeLabel, "operator": "Exists"}}}},
							}}},
						"tolerations": []any{Object{"operator": "Exists"}},
						// logs are root's
						"securityContext": Object{"runAsUser": 0, "seccompProfile": Object{"type": "RuntimeDefault"}},
						"volumes": []any{
							onHost("logs", "/var/log", "Directory"), Object{"name": "configuration",
								"configMap": Object{"name": LogShipper}},
							// It outlives the pod: the next one continues there and sends no line twice.
							onHost("state", "/var/fluent-bit/"+LogShipper, "DirectoryOrCreate"),
						},
						"containers": []any{Object{
							"name": "fluent-bit", "image": fluentBitImage,
							"resources": Object{
								"requests": Object{"cpu": "50m", "memory": "64Mi"},
								"limits":   Object{"cpu": "500m", "memory": "256Mi"},
							},
							"volumeMounts": []any{
								mount("logs", "/var/log", true), mount("configuration", "/fluent-bit/etc", true),
								mount("state", "/state", false),
							},
							"securityContext": unprivileged(),
						}},
					},
				},
			},
		},
	}
}
