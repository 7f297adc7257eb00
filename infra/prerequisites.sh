#!/bin/sh
# Says what a deploy needs that this machine lacks, all of it at once, each with what to do.
# usage: prerequisites.sh ISSUER AUDIENCE [diff]
issuer=$1 audience=$2 goal=$3
lacks=0
lack() {
	echo "deploy: $1" >&2
	lacks=1
}
has() { command -v "$1" >/dev/null 2>&1; }

has go || lack "go is not here: install Go 1.26 or later (https://go.dev/dl)"
if has node; then
	major=$(node --version | sed 's/^v\([0-9]*\).*/\1/')
	[ "$major" -ge 20 ] || lack "node is version $major: 20 or later is needed, 22 or 24 are supported"
else
	lack "node is not here: install Node.js 22 or 24; CDK runs on it"
fi
has npm || lack "npm is not here: it comes with Node.js, and installs the CDK command"
if [ "$goal" = diff ]; then
	: # no image is built
elif has docker; then
	docker info >/dev/null 2>&1 || lack "docker does not answer: start it; the workers' image is built with it"
else
	lack "docker is not here: the workers' image is built with it; all but the workers deploy without it by STACKS='…-data …-flow …-watch'"
fi
if [ -z "$AWS_ACCESS_KEY_ID$AWS_PROFILE$AWS_WEB_IDENTITY_TOKEN_FILE$AWS_CONTAINER_CREDENTIALS_RELATIVE_URI" ] && [ ! -f "$HOME/.aws/config" ] && [ ! -f "$HOME/.aws/credentials" ]; then
	lack "no AWS credentials are set: run 'aws configure' or set AWS_PROFILE; the account and region must have been bootstrapped once with 'infra/node_modules/.bin/cdk bootstrap'"
fi
[ -n "$issuer" ] || lack "ISSUER is not set: the iss of the tokens that callers bring, such as ISSUER=https://id.example.com"
[ -n "$audience" ] || lack "AUDIENCE is not set: the aud of the tokens that are meant for this API, such as AUDIENCE=punctual"
exit $lacks
