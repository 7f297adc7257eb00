#!/bin/sh
# Makes the index of jobs anew from the jobs table, with your AWS credentials: it calls the function PREFIX-reindex
# until that has read all rows. After an interrupt, FROM goes on where a line says it was.
# usage: reindex.sh TARGET REGION SETTINGS FROM
target=$1 region=$2 settings=$3 progress=${4:-'{}'}
fail() {
	echo "reindex: $1" >&2
	exit 1
}
case $target in
dev) prefix=punctual-dev ;;
*) prefix=punctual ;;
esac
for setting in $settings; do
	case $setting in
	prefix=*) prefix=${setting#prefix=} ;;
	esac
done
command -v aws >/dev/null 2>&1 || fail "the AWS CLI is not here"
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
while :; do
	printf '%s' "$progress" >"$folder/in"
	error=$(aws lambda invoke --region "$region" --function-name "$prefix-reindex:live" --payload "fileb://$folder/in" \
		--output text --query FunctionError "$folder/out") ||
		fail "$prefix-reindex cannot be called; it is there with search=yes. Go on with FROM='$progress'"
	[ "$error" = None ] || fail "$(cat "$folder/out"). Go on with FROM='$progress'"
	progress=$(tr -d ' \n' <"$folder/out") # an emulator writes the answer anew, with spaces
	echo "reindex: $progress" >&2
	case $progress in
	*'"done":true'*) exit 0 ;;
	esac
done
