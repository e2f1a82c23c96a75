#pragma once

#include "models/config/result.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/protocol/device_speed.h"

#include <string>
#include <string_view>

/// A measured device as rows of the user's own planner files (docs/planner.md, "Data of your own").
namespace app {

/// Texts of `gpus.json` and `calibration.json`; empty: no such file.
struct UserFiles {
    std::string gpus;
    std::string calibration;
};

struct UserCalibration {
    std::string gpu;          // id of the GPU that the rows are about
    bool is_new_gpu = false;  // that no catalogue has: gpus.json tells of it
    UserFiles files;
};

/// `files` with rows of `speed`, in the place of those of an earlier measurement of the same GPU.
/// A device that `known` has no GPU for is added as one. `date` goes into the source's words.
/// Errors: a file of the user's that is no JSON object; a GPU of the user's own with the name that
/// a new one would get.
models::Result<UserCalibration> calibrate(const profiler::DeviceSpeed& speed,
                                          const std::vector<profiler::Gpu>& known,
                                          const UserFiles& files, std::string_view date);

}  // namespace app
