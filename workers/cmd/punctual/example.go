package main

import (
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// examples are the lines that the help of a verb shows. A test parses each.
var examples = map[string][]string{
	"serve": {"punctual serve", "punctual serve --data ~/.punctual",
		"punctual serve --at 2027-03-28T00:55:00+01:00 --speed 60"},
	"run": {"punctual run echo -p '{\"hello\":\"world\"}' --wait", "punctual run echo --in 1h --tag team=data",
		"punctual run echo --limit github:acct-42 --pool long --timeout 20m --max-attempts 3",
		"punctual run echo --after 01JQ7Z3W9V5K2M8X4T6B1N0C9D --start-within 1h",
		"punctual run echo --in 1m --unique invoice-42 --on-conflict replace",
		"punctual run echo --at 23:30", "punctual run echo --at 2027-03-28T01:00:00Z --key my-order"},
	"get":    {"punctual get 01JQ7Z3W9V5K2M8X4T6B1N0C9D", "punctual get 01JQ7Z3W9V5K2M8X4T6B1N0C9D -o yaml"},
	"ls":     {"punctual ls --status DEAD --task echo", "punctual ls --limit 0 -o name"},
	"cancel": {"punctual cancel 01JQ7Z3W9V5K2M8X4T6B1N0C9D"},
	"redrive": {"punctual redrive 01JQ7Z3W9V5K2M8X4T6B1N0C9D",
		"punctual redrive 01JQ7Z3W9V5K2M8X4T6B1N0C9D --payload-patch '{\"name\":\"Ada\"}' --in 1h"},
	"job pause":  {"punctual job pause 01JQ7Z3W9V5K2M8X4T6B1N0C9D --reason 'the target is down'"},
	"job resume": {"punctual job resume 01JQ7Z3W9V5K2M8X4T6B1N0C9D"},
	"attempts":   {"punctual attempts 01JQ7Z3W9V5K2M8X4T6B1N0C9D"},
	"stats":      {"punctual stats --last 1h --step 5m", "punctual stats --task echo --step 1d --last 240h -o json"},
	"logs": {"punctual logs 01JQ7Z3W9V5K2M8X4T6B1N0C9D -f",
		"punctual logs 01JQ7Z3W9V5K2M8X4T6B1N0C9D --attempt 2"},
	"tail":   {"punctual tail --task echo", "punctual tail --for 10s -o json"},
	"bench":  {"punctual bench -n 50", "punctual bench echo -n 1000 -c 16 --within 2m"},
	"doctor": {"punctual doctor", "punctual --context prod doctor"},

	"apply": {"punctual apply -f punctual.yaml --dry-run", "punctual apply -f -"},

	"task ls":     {"punctual task ls"},
	"task get":    {"punctual task get report -o yaml"},
	"task put":    {"punctual task put -f tasks.yaml"},
	"task delete": {"punctual task delete report"},

	"exclusion ls":     {"punctual exclusion ls"},
	"exclusion get":    {"punctual exclusion get holidays -o yaml"},
	"exclusion put":    {"punctual exclusion put -f holidays.yaml"},
	"exclusion delete": {"punctual exclusion delete holidays"},

	"limit ls": {"punctual limit ls"},
	"limit put": {"punctual limit put github --max-running 5 --rate 100/1m",
		"punctual limit put builds --max-running 1 --when-full cancel_oldest"},
	"limit get":    {"punctual limit get github"},
	"limit delete": {"punctual limit delete github"},
	"limit keys":   {"punctual limit keys github"},

	"forecast show": {"punctual forecast", "punctual forecast --to 2027-04-03T00:00:00Z --step 1d"},
	"forecast calm": {"punctual forecast calm --between 01:00-05:00 --timezone Europe/Berlin"},

	"usage":   {"punctual usage", "punctual usage --by tag.team --last 168h"},
	"workers": {"punctual workers", "punctual workers --queues"},
	"audit ls": {"punctual audit ls --resource schedule/nightly",
		"punctual audit ls --actor ana@example.com --after 2027-03-28T00:00:00Z"},

	"webhook ls":         {"punctual webhook ls"},
	"webhook put":        {"punctual webhook put -f webhooks.yaml"},
	"webhook get":        {"punctual webhook get ops -o yaml"},
	"webhook delete":     {"punctual webhook delete ops"},
	"webhook test":       {"punctual webhook test ops"},
	"webhook deliveries": {"punctual webhook deliveries ops --status DEAD"},
	"webhook redeliver":  {"punctual webhook redeliver ops 01JQ7Z3W9V5K2M8X4T6B1N0C9D"},

	"operation ls": {"punctual operation ls"},
	"operation create": {"punctual operation create redrive --task mail --canary 10 --rate 500/1s --wait",
		"punctual operation create cancel --tag customer=42 --dry-run"},
	"operation get":    {"punctual operation get 01JQ7Z3W9V5K2M8X4T6B1N0C9D --wait"},
	"operation pause":  {"punctual operation pause 01JQ7Z3W9V5K2M8X4T6B1N0C9D"},
	"operation resume": {"punctual operation resume 01JQ7Z3W9V5K2M8X4T6B1N0C9D"},
	"operation stop":   {"punctual operation stop 01JQ7Z3W9V5K2M8X4T6B1N0C9D"},

	"operation proceed": {"punctual operation proceed 01JQ7Z3W9V5K2M8X4T6B1N0C9D"},

	"schedule apply": {"punctual schedule apply -f schedules.yaml --dry-run",
		"punctual schedule apply -f schedules.yaml --paused",
		"punctual schedule apply -f team.yaml --prune --tag team=data"},
	"schedule ls":      {"punctual schedule ls"},
	"schedule get":     {"punctual schedule get nightly -o yaml"},
	"schedule delete":  {"punctual schedule delete nightly"},
	"schedule preview": {"punctual schedule preview nightly -n 3"},
	"schedule why":     {"punctual schedule why nightly --at 2027-03-28T02:30:00+01:00"},
	"schedule run": {"punctual schedule run nightly --wait",
		"punctual schedule run nightly --payload-patch '{\"report\":\"stock\"}'",
		"punctual schedule run nightly --overlap obey"},
	"schedule backfill": {
		"punctual schedule backfill nightly --from 2027-03-01T00:00:00Z --to 2027-03-28T00:00:00Z --dry-run",
		"punctual schedule backfill nightly --from 2027-03-01T00:00:00Z --to 2027-03-28T00:00:00Z --wait"},
	"schedule pause":  {"punctual schedule pause nightly --reason 'the source is down'"},
	"schedule resume": {"punctual schedule resume nightly --missed last"},

	"dag apply":      {"punctual dag apply -f etl.yaml --dry-run", "punctual dag apply -f etl.yaml"},
	"dag ls":         {"punctual dag ls"},
	"dag get":        {"punctual dag get etl -o yaml"},
	"dag delete":     {"punctual dag delete etl"},
	"dag run":        {"punctual dag run etl --wait", "punctual dag run etl -p '{\"day\":\"2027-03-28\"}' --in 1h"},
	"dag runs":       {"punctual dag runs etl --status FAILED"},
	"dag status":     {"punctual dag status 01JQ7Z3W9V5K2M8X4T6B1N0C9D"},
	"dag events":     {"punctual dag events 01JQ7Z3W9V5K2M8X4T6B1N0C9D"},
	"dag pause":      {"punctual dag pause 01JQ7Z3W9V5K2M8X4T6B1N0C9D --reason 'the source is down'"},
	"dag resume":     {"punctual dag resume 01JQ7Z3W9V5K2M8X4T6B1N0C9D"},
	"dag delete-run": {"punctual dag delete-run 01JQ7Z3W9V5K2M8X4T6B1N0C9D"},
	"dag node": {"punctual dag node 01JQ7Z3W9V5K2M8X4T6B1N0C9D load",
		"punctual dag node 01JQ7Z3W9V5K2M8X4T6B1N0C9D load --items"},
	"dag watch": {"punctual dag watch 01JQ7Z3W9V5K2M8X4T6B1N0C9D"},
	"dag graph": {"punctual dag graph 01JQ7Z3W9V5K2M8X4T6B1N0C9D --format svg"},
	"dag cancel": {
		"punctual dag cancel 01JQ7Z3W9V5K2M8X4T6B1N0C9D --reason 'not today'"},
	"dag retry": {"punctual dag retry 01JQ7Z3W9V5K2M8X4T6B1N0C9D",
		"punctual dag retry 01JQ7Z3W9V5K2M8X4T6B1N0C9D load",
		"punctual dag retry 01JQ7Z3W9V5K2M8X4T6B1N0C9D --from load"},
	"dag skip": {"punctual dag skip 01JQ7Z3W9V5K2M8X4T6B1N0C9D load --children skip"},
	"dag complete": {
		"punctual dag complete 01JQ7Z3W9V5K2M8X4T6B1N0C9D load --result '{\"rows\":7}'"},

	"dead ls":     {"punctual dead ls --task greet"},
	"dead groups": {"punctual dead groups"},
	"dead redrive": {"punctual dead redrive --task greet --dry-run",
		"punctual dead redrive --task greet --payload-patch '{\"name\":\"Ada\"}'",
		"punctual dead redrive 01JQ7Z3W9V5K2M8X4T6B1N0C9D"},
	"dead purge": {"punctual dead purge --all --dry-run"},

	"pause <scope>": {"punctual pause task:echo --reason 'maintenance'",
		"punctual pause all --until 2027-03-28T03:00:00Z"},
	"pause ls": {"punctual pause ls"},
	"resume":   {"punctual resume task:echo"},

	"data check":  {"punctual data check ~/.punctual"},
	"data repair": {"punctual data repair ~/.punctual"},
	"login":       {"punctual --context staging login"},
	"logout":      {"punctual --context staging logout"},
	"completion":  {"punctual completion bash"},
}

// nameOf returns a verb as examples has it: "dag run".
func nameOf(n *kong.Node) string {
	if n.Parent == nil || n.Parent.Type == kong.ApplicationNode {
		return nameIn(n)
	}
	return nameOf(n.Parent) + " " + nameIn(n)
}

func nameIn(n *kong.Node) string {
	if n.Type == kong.ArgumentNode {
		return "<" + n.Name + ">"
	}
	return n.Name
}

// valueNames are what the help shows in place of the value of a flag, by its type; kong shows others by their names.
var valueNames = map[reflect.Type]string{
	reflect.TypeFor[typedTime](): "TIME", reflect.TypeFor[time.Duration](): "LENGTH", reflect.TypeFor[int64](): "N",
	reflect.TypeFor[int](): "N", reflect.TypeFor[*int64](): "N", reflect.TypeFor[*float64](): "N",
}

// showExamples puts the examples into the help of each verb. Kong keeps lines that are indented.
func showExamples(k *kong.Kong) error {
	for _, verb := range k.Model.Leaves(false) {
		if lines := examples[nameOf(verb)]; len(lines) > 0 {
			verb.Detail = "Examples:\n\n    " + strings.Join(lines, "\n    ")
		}
		for _, f := range verb.Flags {
			if f.PlaceHolder == "" && !f.HasDefault {
				f.PlaceHolder = valueNames[f.Target.Type()]
			}
		}
	}
	return nil
}
