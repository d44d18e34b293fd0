#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares standard input with a file; writes the file instead if HLO_UPDATE_GOLDENS is set.
# usage: golden.sh FILE
if [ -n "${HLO_UPDATE_GOLDENS-}" ]; then
    cat >"$1"
else
    diff -u "$1" -
fi
