#include "app/workspace/capture_form.h"

#include "app/user/workload_jobs.h"
#include "profiler/protocol/messages.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <filesystem>
#include <sstream>
#include <utility>

namespace app {
namespace {

WorkloadOptions options_of(const CaptureForm& form) {
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
    options.output = form.folder;
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

models::Result<std::vector<profiler::Request>> make_requests(const CaptureForm& form) {
    if (form.folder.empty()) return models::fail("Choose a folder for the traces.");
    const auto list = make_jobs(options_of(form), form.recipes);
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
