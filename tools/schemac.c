/* SPDX-License-Identifier: Apache-2.0 */
/* schemac FILE.proto OUT.h OUT.c: compiles a schema of protobuf messages to C structs and to the
 * tables that grammar/message/ reads. It supports the subset of proto3 that this tree uses:
 * messages, enums, oneofs and repeated fields, and no maps, options, imports or services. */
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAME = 128, MAX_TYPES = 256, MAX_FIELDS = 2048, MAX_VALUES = 64 };

typedef struct field {
    char type[MAX_NAME], name[MAX_NAME], oneof[MAX_NAME];
    bool repeated;
    unsigned number;
} field;

/* A message or an enum. Enumerators are fields without a type. */
typedef struct type {
    char name[MAX_NAME]; /* with the names of the messages around it, separated by dots */
    bool is_enum;
    field *fields;
    size_t count;
} type;

static const char *path, *at;
static unsigned line = 1;
static char word[MAX_NAME], package[MAX_NAME];
static type types[MAX_TYPES];
static size_t type_count;
static field fields[MAX_FIELDS];
static size_t field_count;

static void fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s:%u: error: ", path, line);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}
