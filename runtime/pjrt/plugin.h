/* SPDX-License-Identifier: Apache-2.0 */
/* A PJRT plugin: loading it, calling its functions, its errors as diagnostics. */
#ifndef HLO_RUNTIME_PJRT_PLUGIN_H
#define HLO_RUNTIME_PJRT_PLUGIN_H

#include "hlo/diag.h"
#include "hlo/status.h"
#include "runtime/pjrt/abi.h"

/* A loaded plugin. It stays loaded until the process ends, because plugins keep threads. */
typedef struct pjrt_plugin {
    const char *path; /* borrowed */
    const pjrt_api *api;
} pjrt_plugin;

/* Loads and initializes the plugin. Returns HLO_INVALID_INPUT, with an error in `sink`, if the file
 * is not a plugin of major version 0. */
hlo_status pjrt_plugin_load(const char *path, const hlo_diag_sink *sink, pjrt_plugin *out);

/* Calls a function. Returns HLO_INVALID_INPUT, with an error "PATH: error: cannot `doing`: ..." in
 * `sink`, if the function fails or the plugin lacks it. */
hlo_status pjrt_plugin_call(const pjrt_plugin *plugin, pjrt_function function, void *arguments,
                            const char *doing, const hlo_diag_sink *sink);
/* Calls a function whose only argument is an object; NULL objects are skipped. */
hlo_status pjrt_plugin_call_on(const pjrt_plugin *plugin, pjrt_function function, void *object,
                               const char *doing, const hlo_diag_sink *sink);
/* A function that executes typed custom calls; its argument and result are XLA's. */
typedef void pjrt_handler(void);
/* Registers the function for a target and a platform, unless the plugin lacks the extension.
 * Returns the same statuses as pjrt_plugin_call(). */
hlo_status pjrt_plugin_register(const pjrt_plugin *plugin, const char *target, const char *platform,
                                pjrt_handler *handler, const hlo_diag_sink *sink);
/* Waits for an event, and destroys it; NULL is allowed. */
hlo_status pjrt_plugin_await(const pjrt_plugin *plugin, pjrt_event *event, const char *doing,
                             const hlo_diag_sink *sink);

#endif
