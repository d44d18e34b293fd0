#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# status.sh N COMMAND...: runs the command, and succeeds if its exit status is exactly N.
want=$1
shift
"$@"
have=$?
[ "$have" = "$want" ] && exit 0
echo "status.sh: exit status $have, expected $want: $*" >&2
exit 1
