#pragma once

#include "app/window/shell.h"

#include <cstdint>
#include <filesystem>

/// Random mouse moves, clicks, drags, keys and texts: nothing that a user does may end the program.
namespace tests {

struct RandomInputs {
    int64_t count = 1000;  // number of inputs; each is followed by a frame
    uint32_t seed = 1;
    std::filesystem::path traces;  // the files in it are opened and closed
};

/// Returns 0 if the window still works after all inputs: it closes what is open, opens a trace and
/// draws it. Assertions of ImGui and sanitizers end the process.
int check_random_inputs(app::Shell& shell, const RandomInputs& inputs);

}  // namespace tests
