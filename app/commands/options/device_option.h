#pragma once

#include "app/commands/options/command_line.h"

namespace app {

/// --device of a command that shows traces: which GPU of a file with several.
inline Option device_option() {
    return {.names = "--device",
            .help = "GPU of a file with several: cuda:1 (without it, the first or busiest)",
            .value_name = "NAME"};
}

}  // namespace app
