#pragma once

#include "models/config/result.h"

#include <filesystem>
#include <vector>

/// The example traces of the program: a step of BERT-large, predicted for an NVIDIA A100 40 GB,
/// with the original ops and with Tempo's. `scripts/examples` makes them.
namespace app {

/// `$XDG_CACHE_HOME/temposcope/examples`, or `~/.cache/temposcope/examples`; empty where neither
/// `XDG_CACHE_HOME` nor `HOME` is set.
std::filesystem::path examples_folder();

/// Writes the examples into `folder`, unless they are there already, and returns their paths, the
/// original ops first. Errors: `folder` is empty, or cannot be created or written.
models::Result<std::vector<std::filesystem::path>> write_examples(
    const std::filesystem::path& folder);

}  // namespace app
