#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail(output *out) {
    int why = errno;
    if (out->temporary) unlink(out->temporary);
    free(out->temporary);
    free(out->final);
    errno = why;
    return false;
}

/* The permissions that a file made by open() would have; mkstemp() gives fewer. */
static mode_t usual_mode(void) {
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

bool output_open(output *out, const char *path) {
    *out = (output){.file = stdout, .name = path ? path : "standard output"};
    if (!path) return true;
    struct stat there;
    bool exists = stat(path, &there) == 0;
    if (exists && !S_ISREG(there.st_mode)) return (out->file = fopen(path, "w")) != NULL;
    /* A link keeps pointing at the file that is replaced. */
    out->final = exists ? realpath(path, NULL) : NULL;
    if (!out->final && asprintf(&out->final, "%s", path) < 0) return fail(out);
    if (asprintf(&out->temporary, "%s.XXXXXX", out->final) < 0) return fail(out);
    int fd = mkstemp(out->temporary);
    if (fd < 0) {
        free(out->temporary);
        out->temporary = NULL;
        return fail(out);
    }
    if (fchmod(fd, exists ? there.st_mode & 07777 : usual_mode()) == 0 &&
        (out->file = fdopen(fd, "w")))
        return true;
    close(fd);
    return fail(out);
}

bool output_close(output *out, bool keep) {
    bool whole = !ferror(out->file) && fflush(out->file) == 0;
    int why = errno;
    if (out->file != stdout && fclose(out->file) != 0 && whole) {
        whole = false;
        why = errno;
    }
    if (whole && keep && out->final && rename(out->temporary, out->final) != 0) {
        whole = false;
        why = errno;
    }
    if ((!whole || !keep) && out->temporary) unlink(out->temporary);
    free(out->temporary);
    free(out->final);
    errno = why;
    return whole;
}
