#pragma once

#include <string_view>
#include <vector>

namespace profiler {
struct Gpu;
}

namespace app {

/// The rows of an open list of GPUs: name at the left, memory at the right. Returns the one that
/// was clicked.
const profiler::Gpu* gpu_rows(const std::vector<profiler::Gpu>& gpus, std::string_view chosen_id);

/// A closed list that shows the chosen GPU; its id if it is none of `gpus`. Returns the one that
/// was clicked.
const profiler::Gpu* gpu_list(const char* id, const std::vector<profiler::Gpu>& gpus,
                              std::string_view chosen_id);

}  // namespace app
