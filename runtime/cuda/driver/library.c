/* SPDX-License-Identifier: Apache-2.0 */
/* Opens CUDA's libraries. */
#include "runtime/cuda/driver/library.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ir/text/diag.h"

typedef struct library_info {
    const char *what, *variable, *sonames, *beside;
} library_info;

static const library_info libraries[CUDA_LIBRARY_COUNT] = {
#define CUDA_LIBRARY(id, what, variable, sonames, beside) {what, variable, sonames, beside},
#include "runtime/cuda/driver/library.def"
#undef CUDA_LIBRARY
};

typedef struct folder_info {
    const char *root, *pattern;
} folder_info;

static const folder_info folders[] = {
#define CUDA_FOLDER(root, pattern) {root, pattern},
#include "runtime/cuda/driver/library.def"
#undef CUDA_FOLDER
};

enum { PATH_SIZE = 4096 };

/* Libraries stay loaded, because unloading them would leak memory that they keep. */
#define LOADING (RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)

/* Opens the libraries next to `path` that `info` lists as dependencies, and then the library at
 * `path`. If a dependency cannot be opened, the error of the library itself names it. */
static void *open_path(const library_info *info, const char *path) {
    const char *slash = strrchr(path, '/');
    char pattern[PATH_SIZE];
    int length = snprintf(pattern, sizeof pattern, "%.*s/%s", slash ? (int)(slash - path) : 0, path,
                          info->beside);
    glob_t found;
    if (slash && *info->beside && length < (int)sizeof pattern &&
        glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) dlopen(found.gl_pathv[i], LOADING);
        globfree(&found);
    }
    return dlopen(path, LOADING);
}

/* Writes the folder that the root of a row of library.def stands for, if there is one. */
static bool find_root(const char *root, char *out, size_t size) {
    if (strcmp(root, "python3") == 0) {
        /* Find the parent folder of the folder of the first python3 in PATH. */
        const char *at = getenv("PATH");
        while (at && *at) {
            int length = (int)strcspn(at, ":");
            int written = snprintf(out, size, "%.*s/python3", length, at);
            if (length && written < (int)size && access(out, X_OK) == 0)
                return snprintf(out, size, "%.*s/..", length, at) < (int)size;
            at += length;
            at += *at == ':';
        }
        return false;
    }
    if (strcmp(root, "self") == 0) {
        /* Find the folder of the file that contains this code. */
        Dl_info self;
        const char *slash = dladdr(folders, &self) ? strrchr(self.dli_fname, '/') : NULL;
        return slash && snprintf(out, size, "%.*s", (int)(slash - self.dli_fname), self.dli_fname) <
                            (int)size;
    }
    const char *folder = *root ? getenv(root) : "";
    return folder && (*folder || !*root) && snprintf(out, size, "%s", folder) < (int)size;
}

/* Opens the soname in one of the folders of library.def. Returns NULL if it is not found. */
static void *open_in_folders(const library_info *info, const char *soname) {
    void *handle = NULL;
    for (size_t i = 0; i < sizeof folders / sizeof *folders && !handle; i++) {
        char root[PATH_SIZE], pattern[PATH_SIZE];
        glob_t found;
        if (!find_root(folders[i].root, root, sizeof root) ||
            snprintf(pattern, sizeof pattern, "%s%s/%s", root, folders[i].pattern, soname) >=
                (int)sizeof pattern ||
            glob(pattern, 0, NULL, &found) != 0)
            continue;
        for (size_t k = 0; k < found.gl_pathc && !handle; k++)
            handle = open_path(info, found.gl_pathv[k]);
        globfree(&found);
    }
    return handle;
}

/* Opens the file that the library's environment variable names or, if the variable is not set, the
 * first soname that can be loaded. If none can be loaded, reports the error of the first one and
 * returns NULL. */
static void *open_library(const cuda_library *lib, const library_info *info,
                          const hlo_diag_sink *sink) {
    const char *path = getenv(info->variable);
    char names[256], why[512] = "", *rest = NULL;
    if (path && *path) {
        void *handle = open_path(info, path);
        if (!handle)
            hlo_diag_refuse(sink, HLO_DIAG_DEVICE, NULL, 0, 0, "cannot load %s from %s: %s",
                            info->what, info->variable, dlerror());
        return handle;
    }
    int version = 0; /* without a driver, all versions are tried */
    const int major =
        !lib->cuDriverGetVersion || lib->cuDriverGetVersion(&version) ? INT_MAX : version / 1000;
    snprintf(names, sizeof names, "%s", info->sonames);
    for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        const char *at = strstr(name, ".so."); /* the major version follows */
        if ((at ? atoi(at + 4) : 0) > major) continue;
        void *handle = dlopen(name, LOADING);
        if (!handle && !*why) snprintf(why, sizeof why, "%s", dlerror());
        if (!handle) handle = open_in_folders(info, name);
        if (handle) return handle;
    }
    char older[64] = "";
    if (major != INT_MAX)
        snprintf(older, sizeof older, " for CUDA %d (the driver's version) or earlier", major);
    hlo_diag_refuse(sink, HLO_DIAG_DEVICE, NULL, 0, 0, "cannot find %s%s: %s", info->what, older,
                    why);
    return NULL;
}

typedef struct symbol_info {
    cuda_library_id library;
    const char *name;
    size_t offset; /* offset of the pointer in struct cuda_library */
    bool optional;
} symbol_info;

static const symbol_info symbols[] = {
#define CUDA_SYMBOL(library, name, symbol, result, parameters)                                     \
    {CUDA_##library, symbol, offsetof(cuda_library, name), false},
#define CUDA_OPTIONAL(library, name, symbol, result, parameters)                                   \
    {CUDA_##library, symbol, offsetof(cuda_library, name), true},
#include "runtime/cuda/driver/cublaslt.def"
#undef CUDA_SYMBOL
};

hlo_status cuda_library_load(cuda_library *lib, cuda_library_id id, const hlo_diag_sink *sink) {
    if (lib->handles[id]) return HLO_OK;
    const library_info *info = &libraries[id];
    void *handle = open_library(lib, info, sink);
    if (!handle) return HLO_INVALID_INPUT;
    cuda_library loaded = *lib;
    loaded.handles[id] = handle;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        if (symbols[i].library != id) continue;
        void *address = dlsym(handle, symbols[i].name);
        if (!address && !symbols[i].optional) {
            hlo_diag_refuse(sink, HLO_DIAG_DEVICE, NULL, 0, 0,
                            "the installed %s lacks %s: it is too old", info->what,
                            symbols[i].name);
            dlclose(handle);
            return HLO_INVALID_INPUT;
        }
        memcpy((char *)&loaded + symbols[i].offset, &address, sizeof address);
    }
    *lib = loaded;
    return HLO_OK;
}

void cuda_library_unload(cuda_library *lib) {
    for (int i = CUDA_LIBRARY_COUNT - 1; i >= 0; i--)
        if (lib->handles[i]) dlclose(lib->handles[i]);
    *lib = (cuda_library){0};
}

const char *cuda_error_text(const cuda_library *lib, int result, char *capacity, size_t size) {
    const char *name = NULL, *text = NULL;
    lib->cuGetErrorName(result, &name);
    lib->cuGetErrorString(result, &text);
    if (name)
        snprintf(capacity, size, "%s (%s)", name, text ? text : "");
    else
        snprintf(capacity, size, "CUDA error %d", result);
    return capacity;
}
