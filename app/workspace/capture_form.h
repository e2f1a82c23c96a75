#pragma once

#include "models/config/result.h"

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

// Every panel sees this header, and none of them needs the JSON library of messages.h.
namespace profiler {
struct Request;
}

namespace app {

class Predictor;
struct JobList;

/// Sizes that replace those of the model's preset; 0: the preset's own.
struct ModelSizes {
    int64_t hidden_size = 0;
    int64_t num_heads = 0;
    int64_t intermediate_size = 0;
    int64_t vocab_size = 0;

    friend bool operator==(const ModelSizes&, const ModelSizes&) = default;
};

/// What the user filled in to start a capture; the fields match the options of `temposcope
/// capture`.
struct CaptureForm {
    std::string device = "auto";  // this computer; or predict:GPU
    bool sweeps = false;          // also finds the largest batch that trains
    std::string model = "bert-base";
    int64_t num_layers = 3;  // 0: as many as the model has
    ModelSizes sizes;        // of a step that came from the Planner
    std::string head = "layers";
    std::vector<std::string> recipes{"original", "tempo"};
    int64_t batch_size = 8;
    int64_t seq_len = 128;
    std::string precision = "fp32";
    bool attention_dropout = true;  // as the model has it; else none
    bool hidden_dropout = true;     // likewise
    bool random_lengths = false;    // of the sequences: Padding::kRandom
    int64_t steps = 2;
    int64_t warmup_steps = 1;
    std::string memory_limit;  // "16GiB"; empty: no limit
    std::string folder = "captures";

    bool predicts() const { return device != "auto"; }

    friend bool operator==(const CaptureForm&, const CaptureForm&) = default;
};

/// For the settings file. A field that is missing or unreadable there keeps its default.
std::map<std::string, std::string> to_fields(const CaptureForm& form);
CaptureForm form_from_fields(const std::map<std::string, std::string>& fields);

/// A folder in the form's folder that does not exist yet, so that no capture replaces another:
/// "captures/bert-base-B8-S128-20261122-203312".
std::filesystem::path new_capture_folder(const CaptureForm& form, std::time_t now);

/// One job per recipe, which writes into `folder`, after the same checks as `temposcope capture`.
/// Errors: an unknown model, recipe or GPU, an impossible size, a step that the GPU cannot run.
models::Result<JobList> make_jobs(const CaptureForm& form, const std::filesystem::path& folder,
                                  const Predictor& predictor);

/// What the workers are told of these jobs, to measure them on this computer.
std::vector<profiler::Request> make_requests(const CaptureForm& form, const JobList& list);

/// Why a capture cannot start, without names of options; empty: it can.
std::string problem_of(const CaptureForm& form, const Predictor& predictor);

}  // namespace app
