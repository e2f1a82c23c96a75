#pragma once

#include "app/user/fields.h"
#include "app/user/workload_jobs.h"

#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

/// The window's form of a capture, with the same checks as `temposcope capture`.

// Every panel sees this header, and none of them needs the JSON library of messages.h.
namespace profiler {
struct Request;
}

namespace app {

class Predictor;

/// What the Capture panel shows at first.
StepForm first_capture_form();

/// Of the sequences: Padding::kRandom.
bool has_random_lengths(const StepForm& form);
void set_random_lengths(StepForm& form, bool random_lengths);

/// For the settings file. A field that is missing or unreadable there keeps its default.
Fields to_fields(StepForm form);
StepForm form_from_fields(const Fields& fields);

/// A folder in the form's folder that does not exist yet, so that no capture replaces another:
/// "captures/bert-base-B8-S128-20261122-203312".
std::filesystem::path new_capture_folder(const StepForm& form, std::time_t now);

/// One job per recipe, which writes into `folder`, after the same checks as `temposcope capture`.
/// Errors: an unknown model, recipe or GPU, an impossible size, a step that the GPU cannot run.
models::Result<JobList> make_jobs(const StepForm& form, const std::filesystem::path& folder,
                                  const Predictor& predictor);

/// What the workers are told of these jobs, to measure them on this computer.
std::vector<profiler::Request> make_requests(const StepForm& form, const JobList& list);

/// Why a capture cannot start, without names of options; empty: it can.
std::string problem_of(const StepForm& form, const Predictor& predictor);

}  // namespace app
