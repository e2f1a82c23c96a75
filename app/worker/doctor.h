#pragma once

#include <nlohmann/json_fwd.hpp>

namespace app {

/// What `temposcope doctor` asks the worker about torch and each part that CUDA needs:
/// {"checks": [{name, status, detail, remedy}, ...]}, `status` "ok" or "missing". Opens
/// libtorch_cuda and our modules, and makes no CUDA context.
nlohmann::json describe_machine();

}  // namespace app
