#pragma once

#include "models/config/result.h"
#include "profiler/formats/snapshot/plain_values.h"

#include <functional>
#include <string>

/// JSON as data, for the folds that pickles go through too.
namespace profiler {

/// Folds a JSON text into the value that it stands for. `json` gets bytes of padding behind its
/// end. `progress` is called with the share that is read, and stops the reading with false.
/// Errors: not JSON, longer than 4 GiB, nested too deep, more than most_memory_bytes, what the fold
/// refuses: with the offset, as "byte 17: ...".
models::Result<PlainValue> fold_json(std::string& json, ValueFold& fold,
                                     const std::function<bool(double)>& progress = {});

}  // namespace profiler
