#!/bin/sh
# Says what a deploy needs that this machine lacks, all of it at once, each with what to do.
# usage: prerequisites.sh ISSUER AUDIENCE TARGET SETTINGS [diff]
issuer=$1 audience=$2 target=$3 settings=$4 goal=$5
targets="dev prod emulator"
known="prefix region account shards schedule_quota jwks tenant_claim scope_claim mail http_allow zones operators reach functions"
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
if [ "$goal" = diff ]; then
	: # no image is built
elif has docker; then
	docker info >/dev/null 2>&1 || lack "docker does not answer: start it, or see that you may use it ('docker info' says why); the workers' image is built with it"
else
	lack "docker is not here: the workers' image is built with it; all but the workers deploy without it by STACKS='*-data *-flow *-watch'"
fi
if [ -z "$AWS_ACCESS_KEY_ID$AWS_PROFILE$AWS_WEB_IDENTITY_TOKEN_FILE$AWS_CONTAINER_CREDENTIALS_RELATIVE_URI" ] && [ ! -f "$HOME/.aws/config" ] && [ ! -f "$HOME/.aws/credentials" ]; then
	lack "no AWS credentials are set: run 'aws configure' or set AWS_PROFILE; the account and region must have been prepared once with 'make bootstrap ACCOUNT=…'"
fi
among "$target" "$targets" || lack "TARGET is '$target': one of $targets"
for setting in $settings; do
	case $setting in
	*=?*) among "${setting%%=*}" "$known" || lack "SETTINGS has '$setting': there is no such setting; there are $known" ;;
	*) lack "SETTINGS has '$setting': each is NAME=VALUE, with spaces between them" ;;
	esac
done
scheme=https://
[ "$target" = emulator ] && scheme=http # and https
case $issuer in
'') lack "ISSUER is not set: the iss of the tokens that callers bring, such as ISSUER=https://id.example.com" ;;
*[[:space:]]*) lack "ISSUER is '$issuer': there is a space in it" ;;
"$scheme"?*) ;;
*) lack "ISSUER is '$issuer': an https URL is needed, such as ISSUER=https://id.example.com, exactly as the tokens' iss has it" ;;
esac
[ -n "$audience" ] || lack "AUDIENCE is not set: the aud of the tokens that are meant for this API, such as AUDIENCE=punctual"
exit $lacks
