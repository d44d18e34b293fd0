/* Opening CUDA's libraries. */
#include "runtime/cuda/driver/library.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "ir/text/diag.h"

typedef struct library_info {
    const char *what, *variable, *sonames;
} library_info;

static const library_info libraries[CUDA_LIBRARY_COUNT] = {
#define CUDA_LIBRARY(id, what, variable, sonames) {what, variable, sonames},
#include "runtime/cuda/driver/library.def"
#undef CUDA_LIBRARY
};

/* Libraries stay loaded: they keep memory that only they refer to, which each unloading would leak.
 */
#define LOADING (RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)

/* Opens the first soname that can be opened; NULL: none, after an error about the first. */
static void *open_library(const library_info *info, const hlo_diag_sink *sink) {
    const char *path = getenv(info->variable);
    char names[256], why[512] = "", *rest = NULL;
    if (path && *path) {
        void *handle = dlopen(path, LOADING);
        if (!handle)
            hlo_diag_refuse(sink, NULL, 0, 0, "%s cannot be loaded from %s: %s", info->what,
                            info->variable, dlerror());
        return handle;
    }
    snprintf(names, sizeof names, "%s", info->sonames);
    for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        void *handle = dlopen(name, LOADING);
        if (handle) return handle;
        if (!*why) snprintf(why, sizeof why, "%s", dlerror());
    }
    hlo_diag_refuse(sink, NULL, 0, 0, "no %s on this machine: %s", info->what, why);
    return NULL;
}

typedef struct symbol_info {
    cuda_library_id library;
    const char *name;
    size_t offset; /* offset of the pointer in struct cuda_library */
} symbol_info;

static const symbol_info symbols[] = {
#define CUDA_SYMBOL(library, name, symbol, result, parameters)                                     \
    {CUDA_##library, symbol, offsetof(cuda_library, name)},
#include "runtime/cuda/driver/cublaslt.def"
#undef CUDA_SYMBOL
};

static void set_symbol(cuda_library *lib, const symbol_info *symbol, void *address) {
    memcpy((char *)lib + symbol->offset, &address, sizeof address);
}

hlo_status cuda_library_load(cuda_library *lib, cuda_library_id id, const hlo_diag_sink *sink) {
    if (lib->handles[id]) return HLO_OK;
    const library_info *info = &libraries[id];
    void *handle = open_library(info, sink);
    if (!handle) return HLO_INVALID_INPUT;
    cuda_library loaded = *lib;
    loaded.handles[id] = handle;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        if (symbols[i].library != id) continue;
        void *address = dlsym(handle, symbols[i].name);
        if (!address) {
            hlo_diag_refuse(sink, NULL, 0, 0, "the %s on this machine has no %s: it is too old",
                            info->what, symbols[i].name);
            dlclose(handle);
            return HLO_INVALID_INPUT;
        }
        set_symbol(&loaded, &symbols[i], address);
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
