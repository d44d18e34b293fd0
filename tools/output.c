#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Leaves errno as it is. */
static void forget(output *out) {
    int why = errno;
    if (out->temporary) unlink(out->temporary);
    free(out->temporary);
    free(out->final);
    *out = (output){.name = out->name};
    errno = why;
}

/* The permissions that a file made by open() would have; mkstemp() gives fewer. */
static mode_t usual_mode(void) {
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* The temporary file, opened. */
static FILE *open_beside(output *out, mode_t mode) {
    char *path;
    if (asprintf(&path, "%s.XXXXXX", out->final) < 0) return NULL;
    int fd = mkstemp(path);
    if (fd < 0) {
        free(path);
        return NULL;
    }
    out->temporary = path;
    FILE *file = fchmod(fd, mode) == 0 ? fdopen(fd, "w") : NULL;
    if (!file) close(fd);
    return file;
}

bool output_open(output *out, const char *path, FILE *standard) {
    *out = (output){
        .file = standard,
        .name = path                 ? path
                : standard == stdout ? "standard output"
                                     : "standard error",
    };
    if (!path) return true;
    struct stat there;
    bool exists = stat(path, &there) == 0;
    if (exists && !S_ISREG(there.st_mode)) return (out->file = fopen(path, "w")) != NULL;
    /* A link keeps pointing at the file that is replaced. */
    out->final = exists ? realpath(path, NULL) : NULL;
    if (!out->final && asprintf(&out->final, "%s", path) < 0) out->final = NULL;
    out->file = out->final ? open_beside(out, exists ? there.st_mode & 07777 : usual_mode()) : NULL;
    if (!out->file) forget(out);
    return out->file != NULL;
}

bool output_end(output *out) {
    FILE *file = out->file;
    if (!file) return true;
    out->file = NULL;
    bool whole = !ferror(file) && fflush(file) == 0;
    int why = errno;
    if (file != stdout && file != stderr && fclose(file) != 0 && whole) {
        whole = false;
        why = errno;
    }
    errno = why;
    return whole;
}

bool output_close(output *out, bool keep) {
    bool done = output_end(out);
    if (done && keep && out->final && (done = rename(out->temporary, out->final) == 0)) {
        free(out->temporary);
        out->temporary = NULL;
    }
    forget(out);
    return done;
}
