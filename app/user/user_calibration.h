#pragma once

#include "models/config/result.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/protocol/measurements.h"

#include <string>
#include <string_view>

/// Turns a measured device into rows of the user's planner files
/// (docs/choose_gpu_and_batch.md, "GPUs of your own").
namespace app {

/// The texts of `gpus.json` and `calibration.json`; empty if there is no such file.
struct UserFiles {
    std::string gpus;
    std::string calibration;
};

struct UserCalibration {
    std::string gpu;          // id of the measured GPU
    bool is_new_gpu = false;  // it was not known and is now in gpus.json
    UserFiles files;
};

/// Adds rows of `speed` to `files`. They replace the rows of an earlier measurement of the same
/// GPU. A device that is not in `known` is added as a new GPU. `date` becomes part of the source.
/// Errors: a file that is not a JSON object; the user already has a GPU with the id that the new
/// GPU would get.
models::Result<UserCalibration> calibrate(const profiler::DeviceSpeed& speed,
                                          const std::vector<profiler::Gpu>& known,
                                          const UserFiles& files, std::string_view date);

}  // namespace app
