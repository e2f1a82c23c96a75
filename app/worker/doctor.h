#pragma once

#include <nlohmann/json_fwd.hpp>

namespace app {

/// Describes torch and each part that CUDA needs, for `temposcope doctor`:
/// {"checks": [{name, status, detail, remedy}, ...]}, with `status` "ok" or "missing". Opens
/// libtorch_cuda and our modules, but creates no CUDA context.
nlohmann::json describe_machine();

}  // namespace app
