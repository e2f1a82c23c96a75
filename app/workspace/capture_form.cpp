#include "app/workspace/capture_form.h"

#include "app/prediction/predictor.h"
#include "models/config/names.h"
#include "profiler/protocol/messages.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace app {
namespace {

/// The fields of the settings file. Their names are those of the first version.
template <typename Visit>
void visit_fields(StepForm& form, const Visit& visit) {
    visit("device", form.device);
    visit("sweep", form.sweeps, kOffOn);
    visit("model", form.model);
    visit("layers", form.layers);
    visit("hidden", form.hidden);
    visit("heads", form.heads);
    visit("intermediate", form.intermediate);
    visit("vocab", form.vocab);
    visit("head", form.head);
    visit("recipes", form.recipes.names);
    visit("batch", form.batch_size);
    visit("seq", form.seq_len);
    visit("precision", form.precision);
    visit("attention_dropout", form.attention_dropout, kOffOn);
    visit("hidden_dropout", form.hidden_dropout, kOffOn);
    bool random_lengths = has_random_lengths(form);
    visit("random_lengths", random_lengths, kOffOn);
    set_random_lengths(form, random_lengths);
    visit("steps", form.steps);
    visit("warmup", form.warmup_steps);
    visit("memory_limit", form.memory_limit);
    visit("folder", form.output);
}

}  // namespace

StepForm first_capture_form() {
    return {.model = "bert-base",
            .layers = 3,
            .recipes = {{"original", "tempo"}},
            .seq_len = 128,
            .steps = 2,
            .output = "captures"};
}

bool has_random_lengths(const StepForm& form) {
    return form.padding == models::kPaddingNames[static_cast<size_t>(models::Padding::kRandom)];
}

void set_random_lengths(StepForm& form, bool random_lengths) {
    const auto padding = random_lengths ? models::Padding::kRandom : models::Padding::kNone;
    form.padding = models::kPaddingNames[static_cast<size_t>(padding)];
}

Fields to_fields(StepForm form) {
    Fields fields;
    visit_fields(form, FieldWriter(fields));
    return fields;
}

StepForm form_from_fields(const Fields& fields) {
    StepForm form = first_capture_form();
    visit_fields(form, FieldReader(fields));
    return form;
}

std::filesystem::path new_capture_folder(const StepForm& form, std::time_t now) {
    const std::string name = fmt::format("{}-B{}-S{}-{:%Y%m%d-%H%M%S}", form.model, form.batch_size,
                                         form.seq_len, fmt::localtime(now));
    const std::filesystem::path first = std::filesystem::path(form.output) / name;
    std::filesystem::path folder = first;
    std::error_code ignored;
    for (int i = 2; std::filesystem::exists(folder, ignored); ++i) {
        folder = first.string() + fmt::format("-{}", i);
    }
    return folder;
}

std::string problem_of(const StepForm& form, const Predictor& predictor) {
    const auto list = make_jobs(form, form.output, predictor);
    return list ? std::string() : list.error().message;
}

models::Result<JobList> make_jobs(const StepForm& form, const std::filesystem::path& folder,
                                  const Predictor& predictor) {
    if (form.output.empty()) return models::fail("Choose a folder for the traces.");
    StepForm run = form;
    if (form.predicts()) run.memory_limit.clear();  // a GPU has its own memory
    run.output = folder.string();
    run.overwrites = true;  // the folder is new
    auto list = make_jobs(run);
    if (!list) return list;
    if (!list->gpu.empty()) {
        for (const Job& job : list->jobs) {
            const auto runs = predictor.check(job.workload, list->gpu);
            if (!runs) return tl::unexpected(runs.error());
        }
    } else if (form.sweeps && list->device == "cpu" && list->memory_limit_bytes < 0) {
        return models::fail(
            "A sweep tries larger and larger batches until the memory is full: set a memory "
            "limit.");
    }
    return list;
}

std::vector<profiler::Request> make_requests(const StepForm& form, const JobList& list) {
    std::vector<profiler::Request> requests;
    for (const Job& job : list.jobs) {
        requests.push_back(
            {.kind = form.sweeps ? profiler::RequestKind::kSweep : profiler::RequestKind::kCapture,
             .workload = models::to_json(job.workload),
             .device = list.device,
             .output_path = std::filesystem::absolute(job.path).string(),
             .memory_limit_bytes = list.memory_limit_bytes,
             .warmup_steps = form.warmup_steps,
             .steps = form.steps});
    }
    return requests;
}

}  // namespace app
