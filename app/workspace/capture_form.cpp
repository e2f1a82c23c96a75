#include "app/workspace/capture_form.h"

#include "app/user/workload_jobs.h"
#include "profiler/protocol/messages.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <filesystem>
#include <sstream>
#include <utility>

namespace app {
namespace {

WorkloadOptions options_of(const CaptureForm& form, const std::filesystem::path& folder) {
    WorkloadOptions options;
    options.model = form.model;
    if (form.num_layers != 0) options.layers = form.num_layers;
    options.head = form.head;
    options.batch_size = form.batch_size;
    options.seq_len = form.seq_len;
    options.precision = form.precision;
    options.warmup_steps = form.warmup_steps;
    options.steps = form.steps;
    options.memory_limit = form.memory_limit;
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

void read_text(const std::map<std::string, std::string>& fields, const char* name,
               std::string& value) {
    if (const auto found = fields.find(name); found != fields.end()) value = found->second;
}

}  // namespace

std::map<std::string, std::string> to_fields(const CaptureForm& form) {
    return {{"model", form.model},
            {"layers", std::to_string(form.num_layers)},
            {"head", form.head},
            {"recipes", fmt::format("{}", fmt::join(form.recipes, " "))},
            {"batch", std::to_string(form.batch_size)},
            {"seq", std::to_string(form.seq_len)},
            {"precision", form.precision},
            {"steps", std::to_string(form.steps)},
            {"warmup", std::to_string(form.warmup_steps)},
            {"memory_limit", form.memory_limit},
            {"folder", form.folder}};
}

CaptureForm form_from_fields(const std::map<std::string, std::string>& fields) {
    CaptureForm form;
    read_text(fields, "model", form.model);
    read_number(fields, "layers", form.num_layers);
    read_text(fields, "head", form.head);
    read_number(fields, "batch", form.batch_size);
    read_number(fields, "seq", form.seq_len);
    read_text(fields, "precision", form.precision);
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

std::string problem_of(const CaptureForm& form) {
    const auto requests = make_requests(form, form.folder);
    return requests ? std::string() : requests.error().message;
}

models::Result<std::vector<profiler::Request>> make_requests(const CaptureForm& form,
                                                             const std::filesystem::path& folder) {
    if (form.folder.empty()) return models::fail("Choose a folder for the traces.");
    WorkloadOptions options = options_of(form, folder);
    options.overwrites = true;  // the folder is new
    const auto list = make_jobs(options, form.recipes);
    if (!list) return tl::unexpected(list.error());
    std::vector<profiler::Request> requests;
    for (const Job& job : list->jobs) {
        requests.push_back({.kind = profiler::RequestKind::kCapture,
                            .workload = models::to_json(job.workload),
                            .output_path = std::filesystem::absolute(job.path).string(),
                            .memory_limit_bytes = list->memory_limit_bytes,
                            .warmup_steps = form.warmup_steps,
                            .steps = form.steps});
    }
    return requests;
}

}  // namespace app
