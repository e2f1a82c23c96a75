#include "app/workspace/capture_form.h"

#include "app/prediction/predictor.h"
#include "app/user/workload_jobs.h"
#include "profiler/protocol/messages.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

namespace app {
namespace {

std::optional<int64_t> size_or_preset(int64_t size) {
    return size == 0 ? std::nullopt : std::optional(size);
}

WorkloadOptions options_of(const CaptureForm& form, const std::filesystem::path& folder) {
    WorkloadOptions options;
    options.device = form.device;
    options.model = form.model;
    if (form.num_layers != 0) options.layers = form.num_layers;
    options.hidden = size_or_preset(form.sizes.hidden_size);
    options.heads = size_or_preset(form.sizes.num_heads);
    options.intermediate = size_or_preset(form.sizes.intermediate_size);
    options.vocab = size_or_preset(form.sizes.vocab_size);
    options.head = form.head;
    options.batch_size = form.batch_size;
    options.seq_len = form.seq_len;
    options.precision = form.precision;
    if (!form.attention_dropout) options.attention_dropout_p = 0;
    if (!form.hidden_dropout) {
        // The option sets both, unless the other one is given.
        const auto preset = models::find_model(form.model);
        if (form.attention_dropout && preset) {
            options.attention_dropout_p = preset->attention_dropout_p;
        }
        options.dropout_p = 0;
    }
    if (form.random_lengths) {
        options.padding = models::kPaddingNames[static_cast<size_t>(models::Padding::kRandom)];
    }
    options.warmup_steps = form.warmup_steps;
    options.steps = form.steps;
    if (!form.predicts()) options.memory_limit = form.memory_limit;  // a GPU has its own memory
    options.output = folder.string();
    return options;
}

void read_number(const std::map<std::string, std::string>& fields, const char* name,
                 int64_t& value) {
    const auto found = fields.find(name);
    if (found == fields.end()) return;
    const std::string& text = found->second;
    std::from_chars(text.data(), text.data() + text.size(), value);
}

void read_switch(const std::map<std::string, std::string>& fields, const char* name, bool& value) {
    if (const auto found = fields.find(name); found != fields.end()) value = found->second == "on";
}

void read_text(const std::map<std::string, std::string>& fields, const char* name,
               std::string& value) {
    if (const auto found = fields.find(name); found != fields.end()) value = found->second;
}

}  // namespace

std::map<std::string, std::string> to_fields(const CaptureForm& form) {
    return {{"device", form.device},
            {"sweep", form.sweeps ? "on" : "off"},
            {"model", form.model},
            {"layers", std::to_string(form.num_layers)},
            {"hidden", std::to_string(form.sizes.hidden_size)},
            {"heads", std::to_string(form.sizes.num_heads)},
            {"intermediate", std::to_string(form.sizes.intermediate_size)},
            {"vocab", std::to_string(form.sizes.vocab_size)},
            {"head", form.head},
            {"recipes", fmt::format("{}", fmt::join(form.recipes, " "))},
            {"batch", std::to_string(form.batch_size)},
            {"seq", std::to_string(form.seq_len)},
            {"precision", form.precision},
            {"attention_dropout", form.attention_dropout ? "on" : "off"},
            {"hidden_dropout", form.hidden_dropout ? "on" : "off"},
            {"random_lengths", form.random_lengths ? "on" : "off"},
            {"steps", std::to_string(form.steps)},
            {"warmup", std::to_string(form.warmup_steps)},
            {"memory_limit", form.memory_limit},
            {"folder", form.folder}};
}

CaptureForm form_from_fields(const std::map<std::string, std::string>& fields) {
    CaptureForm form;
    read_text(fields, "device", form.device);
    read_switch(fields, "sweep", form.sweeps);
    read_text(fields, "model", form.model);
    read_number(fields, "layers", form.num_layers);
    read_number(fields, "hidden", form.sizes.hidden_size);
    read_number(fields, "heads", form.sizes.num_heads);
    read_number(fields, "intermediate", form.sizes.intermediate_size);
    read_number(fields, "vocab", form.sizes.vocab_size);
    read_text(fields, "head", form.head);
    read_number(fields, "batch", form.batch_size);
    read_number(fields, "seq", form.seq_len);
    read_text(fields, "precision", form.precision);
    read_switch(fields, "attention_dropout", form.attention_dropout);
    read_switch(fields, "hidden_dropout", form.hidden_dropout);
    read_switch(fields, "random_lengths", form.random_lengths);
    read_number(fields, "steps", form.steps);
    read_number(fields, "warmup", form.warmup_steps);
    read_text(fields, "memory_limit", form.memory_limit);
    read_text(fields, "folder", form.folder);
    std::string recipes;
    read_text(fields, "recipes", recipes);
    std::istringstream words(recipes);
    std::vector<std::string> names;
    for (std::string name; words >> name;) names.push_back(name);
    if (!names.empty()) form.recipes = std::move(names);
    return form;
}

std::filesystem::path new_capture_folder(const CaptureForm& form, std::time_t now) {
    const std::string name = fmt::format("{}-B{}-S{}-{:%Y%m%d-%H%M%S}", form.model, form.batch_size,
                                         form.seq_len, fmt::localtime(now));
    const std::filesystem::path first = std::filesystem::path(form.folder) / name;
    std::filesystem::path folder = first;
    std::error_code ignored;
    for (int i = 2; std::filesystem::exists(folder, ignored); ++i) {
        folder = first.string() + fmt::format("-{}", i);
    }
    return folder;
}

std::string problem_of(const CaptureForm& form, const Predictor& predictor) {
    const auto list = make_jobs(form, form.folder, predictor);
    return list ? std::string() : list.error().message;
}

models::Result<JobList> make_jobs(const CaptureForm& form, const std::filesystem::path& folder,
                                  const Predictor& predictor) {
    if (form.folder.empty()) return models::fail("Choose a folder for the traces.");
    WorkloadOptions options = options_of(form, folder);
    options.overwrites = true;  // the folder is new
    auto list = make_jobs(options, form.recipes);
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

std::vector<profiler::Request> make_requests(const CaptureForm& form, const JobList& list) {
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
