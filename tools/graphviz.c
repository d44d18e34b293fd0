/* SPDX-License-Identifier: Apache-2.0 */
#include "graphviz.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* True if `dot` read `in` and wrote `out`. */
static bool run_dot(FILE *in, FILE *out) {
    posix_spawn_file_actions_t actions;
    char *const argv[] = {"dot", "-Tsvg", NULL};
    pid_t child;
    int status = 1;
    if (posix_spawn_file_actions_init(&actions) != 0) return false;
    bool started =
        posix_spawn_file_actions_adddup2(&actions, fileno(in), STDIN_FILENO) == 0 &&
        posix_spawn_file_actions_adddup2(&actions, fileno(out), STDOUT_FILENO) == 0 &&
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", 1, 0) == 0 &&
        posix_spawnp(&child, argv[0], &actions, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return started && waitpid(child, &status, 0) == child && status == 0;
}

static char *read_back(FILE *file) {
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    char *text = size >= 0 ? malloc((size_t)size + 1) : NULL;
    if (!text) return NULL;
    rewind(file);
    text[fread(text, 1, (size_t)size, file)] = '\0';
    return text;
}

/* Splits the output into `count` drawings, each from `<svg` to `</svg>`. */
static hlo_status take_apart(const char *text, size_t count, char **out_drawings) {
    static const char end[] = "</svg>";
    for (size_t i = 0; i < count; i++) {
        const char *from = strstr(text, "<svg"), *to = from ? strstr(from, end) : NULL;
        if (!to) return HLO_OK;
        text = to + strlen(end);
        out_drawings[i] = strndup(from, (size_t)(text - from));
        if (!out_drawings[i]) return HLO_OUT_OF_MEMORY;
    }
    return HLO_OK;
}

hlo_status graphviz_draw(void *user, const char *const *graphs, size_t count, char **out_drawings) {
    (void)user;
    hlo_status status = HLO_OK;
    FILE *in = tmpfile(), *out = tmpfile();
    for (size_t i = 0; in && i < count; i++) fputs(graphs[i], in);
    if (in && out && fflush(in) == 0 && lseek(fileno(in), 0, SEEK_SET) == 0 && run_dot(in, out)) {
        char *text = read_back(out);
        status = text ? take_apart(text, count, out_drawings) : HLO_OUT_OF_MEMORY;
        free(text);
    }
    if (in) fclose(in);
    if (out) fclose(out);
    return status;
}
