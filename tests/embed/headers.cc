// Every public header compiles as C++, and what it declares links from C++.
#include <hlo/diag.h>
#include <hlo/module.h>
#include <hlo/pass.h>
#include <hlo/runtime.h>
#include <hlo/status.h>
#include <hlo/text.h>

int main()
{
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    hlo_module *module = nullptr;
    const hlo_status refused = hlo_module_parse("no module", 9, "none", nullptr, &module);
    hlo_module_free(module);
    return refused == HLO_INVALID_INPUT && options.target == 90 ? 0 : 1;
}
