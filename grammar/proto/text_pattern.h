/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of messages as HLO text (text_pattern.def): shared by printing and reading. */
#ifndef HLO_GRAMMAR_PROTO_TEXT_PATTERN_H
#define HLO_GRAMMAR_PROTO_TEXT_PATTERN_H

#include "grammar/proto/proto.h"

enum { HLO_MOST_PATTERNS = 16, HLO_DEEPEST_PATTERN = 100, HLO_LONGEST_FIELD_NAME = 63 };

/* One piece of a pattern: a literal character, or a field. */
typedef struct hlo_pattern_piece {
    char kind;  /* `$`, `@`, `?`, `!`, `&`, `~`; 0: `c` itself; -1: the end */
    char style; /* of a `$`: `^`, `'`, `*`, `#`, or 0 */
    char c;
    char path[HLO_LONGEST_FIELD_NAME + 1];
    const char *body; /* of a `@`: its X; of a `$`: the separator */
    size_t body_size;
    const char *prefix;
    size_t prefix_size;
    long number; /* of a `!` or `@`; 0: none */
} hlo_pattern_piece;

/* Fills `out` with the patterns of a type of message and returns their number. */
size_t hlo_patterns_of(const ProtobufCMessageDescriptor *type, const char **out);
/* Parses the piece at `at` and returns the place behind it. */
const char *hlo_pattern_next(const char *at, const char *end, hlo_pattern_piece *out);
/* Walks a path as hlo_field_walk() does, without making anything. */
const ProtobufCFieldDescriptor *hlo_pattern_walk(const ProtobufCMessage **message,
                                                 const char *path);
/* Returns the number of elements of the field at a path; a list of defaults alone is empty. */
size_t hlo_pattern_count(const ProtobufCMessage *message, const char *path);

#endif
