#pragma once

#include "models/config/result.h"
#include "profiler/formats/plain_values.h"

#include <string>

/// JSON as data, for the folds that pickles go through too.
namespace profiler {

/// Folds a JSON text into the value that it stands for. `json` gets bytes of padding behind its
/// end. `share` below is that of the text.
/// Errors: not JSON, nested too deep, more than most_memory_bytes, what the fold refuses: with the
/// offset, as "byte 17: ...".
models::Result<PlainValue> fold_json(std::string& json, ValueFold& fold);

}  // namespace profiler
