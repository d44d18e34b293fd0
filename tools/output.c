/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The paths of all existing temporary files, for the signal handler. */
enum { MAX_TEMPORARIES = 8 };
static char *volatile temporaries[MAX_TEMPORARIES];

/* Signal handler that removes the temporary files. The signal is blocked until the handler returns;
 * then its default action is executed. */
static void remove_temporaries(int number) {
    for (int i = 0; i < MAX_TEMPORARIES; i++)
        if (temporaries[i]) unlink(temporaries[i]);
    raise(number);
}

/* Blocks all signals, so that a temporary file and its entry change together. */
static void hold_signals(sigset_t *out_before) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, out_before);
}

/* Changes an entry of `temporaries`: adds `to` if `from` is NULL, removes `from` if `to` is NULL.
 */
static bool change_temporary(const char *from, char *to) {
    for (int i = 0; i < MAX_TEMPORARIES; i++)
        if (temporaries[i] == from) {
            temporaries[i] = to;
            return true;
        }
    return false;
}

/* Removes the temporary file and its entry in `temporaries`. Preserves errno. */
static void forget(output *out) {
    int why = errno;
    sigset_t before;
    hold_signals(&before);
    if (out->temporary) {
        unlink(out->temporary);
        change_temporary(out->temporary, NULL);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    free(out->temporary);
    free(out->final);
    *out = (output){.name = out->name};
    errno = why;
}

/* Resolves symbolic links to their target, which need not exist. The caller frees the path. */
static char *follow(const char *path) {
    enum { MAX_LINKS = 40 };
    char *at = strdup(path), target[PATH_MAX];
    for (int links = 0; at; links++) {
        const ssize_t size = readlink(at, target, sizeof target);
        if (size < 0) return at;
        const char *slash = strrchr(at, '/');
        const int folder = *target == '/' || !slash ? 0 : (int)(slash + 1 - at);
        char *next = NULL;
        if (links == MAX_LINKS)
            errno = ELOOP;
        else if (asprintf(&next, "%.*s%.*s", folder, at, (int)size, target) < 0)
            next = NULL;
        free(at);
        at = next;
    }
    return NULL;
}

/* Returns the absolute path of a file, for comparisons. The caller frees it. */
static char *whole_path(const char *path) {
    char *file = follow(path), *slash = file ? strrchr(file, '/') : NULL, *whole = NULL;
    if (!file) return NULL;
    const char *name = slash ? slash + 1 : file;
    char *folder = realpath(slash == file ? "/" : slash ? (*slash = '\0', file) : ".", NULL);
    if (!*name)
        errno = slash ? EISDIR : ENOENT;
    else if (folder && asprintf(&whole, "%s/%s", folder, name) < 0)
        whole = NULL;
    free(folder);
    free(file);
    return whole;
}

/* Creates and opens the temporary file. The temporary name is short, so that it is valid even if
 * the final name has the maximum length. */
static FILE *open_beside(output *out, mode_t mode) {
    char *path;
    const int folder = (int)(strrchr(out->final, '/') - out->final);
    if (asprintf(&path, "%.*s/hlo-fp8.XXXXXX", folder, out->final) < 0) return NULL;
    /* Catch all signals that end the process, except signals that are ignored, such as under
     * nohup. */
    static bool caught;
    if (!caught) {
        /* Signals whose default action does not end the process, or that cannot be caught. */
        static const int others[] = {SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU,
                                     SIGCHLD, SIGCONT, SIGURG,  SIGWINCH};
        caught = true;
        for (int number = 1; number <= SIGRTMAX; number++) {
            bool ends = true;
            for (size_t i = 0; i < sizeof others / sizeof *others; i++) ends &= number != others[i];
            struct sigaction action = {.sa_handler = remove_temporaries,
                                       .sa_flags = (int)SA_RESETHAND},
                             old;
            if (ends && sigaction(number, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
                sigaction(number, &action, NULL);
        }
    }
    sigset_t before;
    hold_signals(&before);
    change_temporary(NULL, path); /* add the entry before mkstemp(), because another thread may
                                   * handle a signal */
    int fd = mkstemp(path), why = errno;
    if (fd < 0) change_temporary(path, NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (fd < 0) {
        free(path);
        errno = why;
        return NULL;
    }
    out->temporary = path;
    FILE *file = fchmod(fd, mode) == 0 ? fdopen(fd, "w") : NULL;
    if (!file) close(fd);
    return file;
}

void output_hold_standard(void) {
    /* Open /dev/null with the wrong mode, so that reads and writes fail like on a closed stream. */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            break;
    setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* one write per line instead of one per character */
}

bool output_spares(const char *path, const char *input) {
    struct stat there, read;
    return !path || !input || stat(path, &there) != 0 || stat(input, &read) != 0 ||
           !S_ISREG(there.st_mode) || there.st_dev != read.st_dev || there.st_ino != read.st_ino;
}

bool output_is_standard(const char *path) {
    return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0;
}

bool output_open(output *out, const char *path, FILE *standard) {
    if (path && output_is_standard(path)) {
        path = NULL;
        standard = stdout;
    }
    *out = (output){
        .file = standard,
        .name = path                 ? path
                : standard == stdout ? "standard output"
                                     : "standard error",
    };
    if (!path) return true;
    struct stat there;
    bool exists = stat(path, &there) == 0;
    if (!exists && errno != ENOENT) return false; /* for example, the name is too long */
    if (exists && !S_ISREG(there.st_mode)) return (out->file = fopen(path, "w")) != NULL;
    if (exists && access(path, W_OK) != 0) return false;
    /* Resolve links, so that the rename replaces the target and not the link. */
    out->final = whole_path(path);
    const mode_t mask = umask(0);
    umask(mask);
    /* Use the permissions with which open() creates a file, because mkstemp() sets stricter
     * permissions. */
    out->file = out->final ? open_beside(out, exists ? there.st_mode & 07777 : 0666 & ~mask) : NULL;
    if (!out->file) forget(out);
    return out->file != NULL;
}

/* Queries the file that an output replaces or, if it replaces none, its open file. */
static bool identify(const output *out, struct stat *found) {
    return out->final ? stat(out->final, found) == 0 : fstat(fileno(out->file), found) == 0;
}

/* True if one output would replace the other, or if their data would be mixed. */
static bool clash(const output *a, const output *b) {
    struct stat x, y;
    if (!a->file || !b->file) return false;
    if (a->final && b->final) return strcmp(a->final, b->final) == 0;
    if (a->file == b->file) return a->file == stdout;
    if (!identify(a, &x) || !identify(b, &y)) return false;
    if (x.st_dev != y.st_dev || x.st_ino != y.st_ino || S_ISCHR(x.st_mode)) return false;
    return a->final || b->final || (a->file != stderr && b->file != stderr);
}

const char *output_shared(const output *files, size_t count) {
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (clash(&files[i], &files[j])) return files[files[i].final ? i : j].name;
    return NULL;
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
    if (!whole &&
        file == stdout) { /* the caller reports the failure, which options_end() must not */
        clearerr(file);
        __fpurge(file);
    }
    errno = why;
    return whole;
}

bool output_close(output *out, bool keep) {
    bool done = output_end(out);
    if (done && keep && out->final) {
        sigset_t before;
        hold_signals(&before);
        done = rename(out->temporary, out->final) == 0;
        const int why = errno;
        if (done) {
            change_temporary(out->temporary, NULL);
            free(out->temporary);
            out->temporary = NULL;
        }
        sigprocmask(SIG_SETMASK, &before, NULL);
        errno = why;
    }
    forget(out);
    return done;
}
