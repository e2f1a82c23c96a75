#pragma once

#include <nlohmann/json_fwd.hpp>

namespace app {

/// What `temposcope doctor` asks the worker: {"facts": [{name, state, detail, remedy}, ...]} about
/// torch, the NVIDIA driver and CUPTI. `state` is "ok" or "missing". Opens nothing of CUDA.
nlohmann::json describe_machine();

}  // namespace app
