package main

import (
	"strings"
	"testing"
)

func TestWebhook_IsPutTestedAndItsDeliveriesListed(t *testing.T) {
	t.Parallel()
	hook := fresh("cli-hook")
	body := "name: " + hook + "\nurl: https://hooks.invalid/x\nevents: [job.dead]\nenabled: false\n"
	out := good(t, "webhook", "put", "-f", file(t, body))
	for _, want := range []string{hook, "https://hooks.invalid/x", "job.dead", "no"} {
		if !strings.Contains(out, want) {
			t.Errorf("put shows no %s: %s", want, out)
		}
	}
	if shown := good(t, "webhook", "get", hook); shown != out {
		t.Errorf("get: %s", shown)
	}
	if listed := good(t, "webhook", "ls", "-o", "name"); !strings.Contains(listed, hook+"\n") {
		t.Errorf("ls: %s", listed)
	}
	first := strings.TrimSpace(good(t, "webhook", "test", hook, "-o", "name"))
	second := strings.TrimSpace(good(t, "webhook", "redeliver", hook, first, "-o", "name"))
	deliveries := good(t, "webhook", "deliveries", hook, "-o", "name")
	if first == second || !strings.Contains(deliveries, first) || !strings.Contains(deliveries, second) {
		t.Errorf("deliveries %s and %s are listed as %s", first, second, deliveries)
	}
	if none := good(t, "webhook", "deliveries", hook, "--status", "cancelled", "-o", "name"); none != "" {
		t.Errorf("cancelled deliveries: %s", none)
	}
	bad(t, exitRefused, "not_found", "webhook", "redeliver", hook, "01JQ7Z3W9V5K2M8X4T6B1N0C9D")
	good(t, "webhook", "delete", hook)
	bad(t, exitRefused, "not_found", "webhook", "test", hook)
}
