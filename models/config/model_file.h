#pragma once

#include "models/config/model_config.h"

#include <string>
#include <string_view>

/// Models from the file config.json that transformers writes beside a model's weights.
namespace models {

/// The model of a config.json of BERT, RoBERTa or GPT-2, named after its folder. A missing key has
/// transformers' own default. Errors: another kind of model or values that no family here has, such
/// as another activation, which point to `temposcope run`; no JSON; a size that is no number.
Result<ModelConfig> parse_model_file(std::string_view text, const std::string& file);

/// A preset, or the model of a file. Errors: those of find_model and parse_model_file, and a file
/// that cannot be read.
Result<ModelConfig> model_from(const std::string& name);

}  // namespace models
