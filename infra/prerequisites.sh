#!/bin/sh
# Says what a deploy needs that this machine lacks, all of it at once, each with what to do.
# usage: prerequisites.sh ISSUER AUDIENCE TARGET SETTINGS [GOAL [STACKS [nobody]]]
# GOAL is synth, diff or deploy (the default); STACKS are patterns, all without it; "nobody" says
# that a deploy has no terminal to ask at and was not told what to do without.
issuer=$1 audience=$2 target=$3 settings=$4 goal=${5:-deploy} stacks=$6 approval=$7
targets="dev prod emulator"
known="prefix shards schedule_quota audit_days usage_tags search tenant_rate tenant_burst jwks tenant_claim scope_claim audience_claim tenant_scope group_claim scope_prefix console_client console_scope console_audience console_origins auth tenants concurrency hold jobs_stream zone_layer backup_account capacity waf mail page http_allow zones operators reach functions"
own="target region account issuer audience" # said by variables of their own
lacks=0
lack() {
	echo "deploy: $1" >&2
	lacks=1
}
has() { command -v "$1" >/dev/null 2>&1; }
# among says whether a word is one of a list's.
among() {
	for word in $2; do
		[ "$word" = "$1" ] && return
	done
	false
}

has go || lack "go is not here: install Go 1.26 or later (https://go.dev/dl)"
if has node; then
	major=$(node --version | sed 's/^v\([0-9]*\).*/\1/')
	case $major in
	'' | *[!0-9]*) lack "node does not say its version: 'node --version' says '$major'; install Node.js 22 or 24" ;;
	*) [ "$major" -ge 20 ] || lack "node is version $major: 20 or later is needed, 22 or 24 are supported" ;;
	esac
else
	lack "node is not here: install Node.js 22 or 24; CDK runs on it"
fi
has npm || lack "npm is not here: it comes with Node.js, and installs the CDK command"
# The image is the fleet's, which comes before what watches it.
image=no
if [ "$goal" = deploy ] && [ "$target" != emulator ]; then
	case " ${stacks:---all} " in
	*" --all "* | *" * "* | *" ** "* | *fleet* | *watch*) image=yes ;;
	esac
fi
if [ $image = no ]; then
	:
elif has docker; then
	docker info >/dev/null 2>&1 || lack "docker does not answer: start it, or see that you may use it ('docker info' says why); the workers' image is built with it"
else
	lack "docker is not here: the workers' image is built with it; all but the workers deploy without it by STACKS='*-data *-flow'"
fi
if [ "$goal" != synth ] && [ -z "$AWS_ACCESS_KEY_ID$AWS_PROFILE$AWS_WEB_IDENTITY_TOKEN_FILE$AWS_CONTAINER_CREDENTIALS_RELATIVE_URI" ] && [ ! -f "$HOME/.aws/config" ] && [ ! -f "$HOME/.aws/credentials" ]; then
	lack "no AWS credentials are set: run 'aws configure' or set AWS_PROFILE; the account and region must have been prepared once with 'make bootstrap ACCOUNT=…'"
fi
[ "$approval" != nobody ] || lack "there is no terminal to ask at whether rights may change: say --require-approval never (make: APPROVAL=never), or any-change to stop instead"
among "$target" "$targets" || lack "TARGET is '$target': one of $targets (-c target=NAME)"
auth=token
for setting in $settings; do
	case $setting in
	auth=*) auth=${setting#auth=} ;;
	esac
	case $setting in
	*=?*)
		name=${setting%%=*}
		among "$name" "$own" && lack "SETTINGS has '$setting': $own have variables of their own, such as REGION=eu-central-1" && continue
		among "$name" "$known" || lack "SETTINGS has '$setting': there is no such setting; there are $known"
		;;
	*) lack "SETTINGS has '$setting': each is NAME=VALUE, with spaces between them" ;;
	esac
done
scheme=https://
[ "$target" = emulator ] && scheme=http # and https
case $auth in
token) ;;
cognito | iam)
	[ -z "$issuer$audience" ] || lack "ISSUER or AUDIENCE is set: with auth=$auth there is none to name"
	exit $lacks
	;;
*)
	lack "auth is '$auth': token, cognito or iam"
	exit $lacks
	;;
esac
case $issuer in
'') lack "ISSUER is not set: the iss of the tokens that callers bring, such as ISSUER=https://id.example.com (-c issuer=URL); without an identity provider, SETTINGS='auth=cognito tenants=NAME' makes one; see infra/auth.md" ;;
*[[:space:]]*) lack "ISSUER is '$issuer': there is a space in it" ;;
"$scheme"?*) ;;
*) lack "ISSUER is '$issuer': an https URL is needed, such as ISSUER=https://id.example.com, exactly as the tokens' iss has it" ;;
esac
[ -n "$audience" ] || lack "AUDIENCE is not set: the aud of the tokens that are meant for this API, such as AUDIENCE=punctual (-c audience=NAME)"
exit $lacks
