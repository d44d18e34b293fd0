/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of hlo-fp8-run as a whole. */
#include <string.h>

#include "hlo/pjrt.h"
#include "hlo/runtime.h"
#include "output.h"
#include "usage.h"

/* Prints a usage error; returns false. */
#define refuse(...) (options_refuse(PROGRAM_RUN, __VA_ARGS__), false)

const option_id usage_written[USAGE_WRITTEN] = {OPTION_OUTPUTS, OPTION_VALUES, OPTION_TRACE,
                                                OPTION_OPTIMIZED};

const char *usage_plugin(const option_value *values) {
    static const char word[] = "pjrt:";
    const char *backend = values[OPTION_BACKEND].text;
    return strncmp(backend, word, sizeof word - 1) ? NULL : backend + sizeof word - 1;
}

uint32_t usage_devices(const options *given) {
    const option_value *values = given->values;
    return usage_plugin(values) ? 1 : (uint32_t)values[OPTION_DEVICES].number;
}

uint32_t usage_judged_devices(const options *given) {
    const option_value *values = given->values;
    return values[OPTION_PARTITIONED].given ? (uint32_t)values[OPTION_DEVICES].number
                                            : usage_devices(given);
}

/* True if each output file is different from standard output and from all inputs. */
static bool spares_files(const options *given) {
    const option_value *values = given->values;
    const char *inputs[] = {
        given->files[0],           values[OPTION_INPUTS].text,   values[OPTION_COMPARE].text,
        values[OPTION_RULES].text, values[OPTION_TOPOLOGY].text, values[OPTION_AUTOTUNE_CACHE].text,
        usage_plugin(values)};
    for (int w = 0; w < USAGE_WRITTEN; w++) {
        const char *path = values[usage_written[w]].text;
        if (path && output_is_standard(path))
            return refuse("--%s cannot write to standard output, which the program prints to",
                          options_name(usage_written[w]));
        for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
            if (!output_spares(path, inputs[i]))
                return refuse("output %s would overwrite input %s", path, inputs[i]);
    }
    return true;
}

/* True if --devices is valid with the other options; otherwise prints an error. */
static bool suits_devices(const options *given) {
    const option_value *values = given->values;
    const bool plugin = usage_plugin(values) != NULL;
    const bool simulates =
        !plugin || (values[OPTION_PARTITIONED].given && values[OPTION_COMPARE].given);
    const int most = simulates ? HLO_MOST_DEVICES : HLO_PJRT_MOST_DEVICES;
    if (values[OPTION_DEVICES].number > most)
        return refuse("invalid value '%s' for --devices: expected a number from 1 to %d",
                      values[OPTION_DEVICES].text, most);
    if (values[OPTION_DEVICES].given && !plugin && values[OPTION_BACKEND].number)
        return refuse("--devices cannot be combined with --backend=cuda");
    return true;
}

bool usage_is_right(const options *given) {
    if (given->file_count != 1)
        return given->file_count ? refuse("expected one input file, found %d", given->file_count)
                                 : refuse("no input file");
    const option_value *values = given->values;
    const bool executes = !values[OPTION_PLAN].given && !values[OPTION_COMPILE_ONLY].given;
    int modes = executes ? MODE_EXECUTE : MODE_PLAN;
    if (values[OPTION_OPTIMIZE].given) modes |= MODE_OPTIMIZE;
    if (values[OPTION_COMPARE].given) modes |= MODE_COMPARE;
    if (usage_plugin(values))
        modes |= MODE_PLUGIN;
    else if (values[OPTION_BACKEND].number)
        modes |= MODE_DEVICE;
    if (modes & MODE_EXECUTE && !(modes & MODE_PLUGIN)) modes |= MODE_LOOK;
    if (!options_suit(PROGRAM_RUN, given, modes)) return false;
    if (usage_plugin(values) && values[OPTION_PLAN].given)
        return refuse("--plan cannot be combined with --backend=pjrt:PLUGIN");
    if (!suits_devices(given)) return false;
    if (values[OPTION_TIME].number > HLO_MOST_RUNS)
        return refuse("invalid value '%s' for --time: expected a number from 1 to %d",
                      values[OPTION_TIME].text, HLO_MOST_RUNS);
    if (values[OPTION_TOPOLOGY].given && !values[OPTION_COMPILE_ONLY].given)
        return refuse("--topology requires --compile-only");
    for (const char *at = values[OPTION_XLA].text; at && *at; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        const size_t length = strcspn(at, " ");
        if (length && !memchr(at, '=', length))
            return refuse("invalid value '%.*s' for --xla: expected KEY=VALUE", (int)length, at);
    }
    const char *compare_with = values[OPTION_COMPARE].text;
    if (compare_with && strcmp(compare_with, "before") == 0 && !values[OPTION_OPTIMIZE].given &&
        strcmp(values[OPTION_BACKEND].text, "cpu") == 0)
        return refuse("--compare=before requires --optimize or --backend=cuda");
    if (values[OPTION_DUMP_VALUES].given != values[OPTION_VALUES].given)
        return refuse(values[OPTION_VALUES].given ? "--values requires --dump-values=NAME,..."
                                                  : "--dump-values requires --values=FILE.npz");
    if (values[OPTION_BISECT].given && !values[OPTION_OPTIMIZE].given)
        return refuse("--bisect requires --optimize");
    if (!spares_files(given)) return false;
    if (values[OPTION_INPUTS].given && values[OPTION_SEED].given)
        return refuse("--seed cannot be combined with --inputs");
    if (values[OPTION_INPUTS].given && values[OPTION_DRAW].given)
        return refuse("--draw cannot be combined with --inputs");
    return true;
}
