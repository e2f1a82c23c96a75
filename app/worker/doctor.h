#pragma once

#include <nlohmann/json_fwd.hpp>

namespace app {

/// What `temposcope doctor` asks the worker about torch, the NVIDIA driver and CUPTI:
/// {"checks": [{name, status, detail, remedy}, ...]}, `status` "ok" or "missing". Opens nothing of
/// CUDA.
nlohmann::json describe_machine();

}  // namespace app
