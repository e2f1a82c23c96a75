#pragma once

#include "app/commands/worker/batch_search.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What a search of the largest batches found.
namespace app {

/// "–" for -1: not known.
std::string size_text(int64_t bytes);
/// "a100-40gb", "a100-40gb, SEQ=512"
std::string name_of(const ProgramCase& one);
/// "a100-40gb, SEQ=512: a batch of 8 fits (20.1 GiB)"
std::string about_try(const ProgramCase& of, const BatchTry& one);
/// Why the first batch that does not fit does not. The sentence begins with `subject`.
std::string why_not(const LargestBatch& found, std::string_view subject);

nlohmann::json batch_json(const LargestBatch& row);
/// The columns are the keys of a row, `more_keys` before those of batch_json. Classes have a column
/// each, and so do the values, in the order of `value_names`; the tensors stand in one: "logits
/// 8589934592; gelu_output 4294967296".
std::string batches_csv(const nlohmann::json& rows, const std::vector<std::string>& value_names,
                        const std::vector<std::string>& more_keys = {});

}  // namespace app
