#include "app/window/capture_session.h"

#include "app/window/wake.h"
#include "models/config/workload.h"
#include "profiler/protocol/messages.h"
#include "profiler/protocol/worker_client.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

namespace app {
namespace {

namespace fs = std::filesystem;

models::Result<models::Workload> make_workload(const CaptureForm& form, const std::string& recipe) {
    models::Workload workload;
    const auto model = models::find_model(form.model);
    if (!model) return tl::unexpected(model.error());
    workload.model = *model;
    if (form.num_layers > 0) workload.model.num_layers = form.num_layers;
    const auto head = models::parse_head(form.head);
    if (!head) return tl::unexpected(head.error());
    workload.head = *head;
    const auto parsed = models::parse_recipe(recipe);
    if (!parsed) return tl::unexpected(parsed.error());
    workload.recipe = *parsed;
    workload.recipe_name = recipe;
    const auto precision = models::parse_precision(form.precision);
    if (!precision) return tl::unexpected(precision.error());
    workload.precision = *precision;
    workload.batch_size = form.batch_size;
    workload.seq_len = form.seq_len;
    if (const auto valid = models::validate_for_cpu(workload); !valid) {
        return tl::unexpected(valid.error());
    }
    return workload;
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
    if (form.recipes.empty()) return models::fail("Choose at least one recipe.");
    if (form.folder.empty()) return models::fail("Name a folder for the traces.");
    if (form.steps < 1) return models::fail("Record at least one step.");
    profiler::Request request{.kind = profiler::RequestKind::kCapture,
                              .warmup_steps = std::max<int64_t>(form.warmup_steps, 0),
                              .steps = form.steps};
    if (!form.memory_limit.empty()) {
        const auto limit = profiler::parse_bytes(form.memory_limit);
        if (!limit) return tl::unexpected(limit.error());
        request.memory_limit_bytes = *limit;
    }
    std::vector<profiler::Request> requests;
    for (const std::string& recipe : form.recipes) {
        const auto workload = make_workload(form, recipe);
        if (!workload) return tl::unexpected(workload.error());
        request.workload = models::to_json(*workload);
        request.output_path = fs::absolute(fs::path(form.folder) / (recipe + ".tscope")).string();
        requests.push_back(request);
    }
    return requests;
}

CaptureSession::~CaptureSession() { cancel(); }

models::Result<void> CaptureSession::start(const CaptureForm& form) {
    if (running()) return models::fail("A capture is running; cancel it before the next.");
    auto requests = make_requests(form);
    if (!requests) return tl::unexpected(requests.error());
    std::error_code error;
    fs::create_directories(form.folder, error);
    if (error) {
        return models::fail("The folder {} cannot be made ({}); name another one.", form.folder,
                            error.message());
    }
    if (thread_.joinable()) thread_.join();
    status_ = {.running = true, .recipe_count = requests->size(), .stage = "starting the worker"};
    cancelled_ = false;
    thread_ = std::jthread([this, requests = std::move(*requests)] { run(requests); });
    return {};
}

void CaptureSession::cancel() {
    std::scoped_lock lock(mutex_);
    if (!status_.running) return;
    cancelled_ = true;
    status_.cancelling = true;
    if (worker_) worker_->cancel();
}

bool CaptureSession::running() const {
    std::scoped_lock lock(mutex_);
    return status_.running;
}

CaptureStatus CaptureSession::status() const {
    std::scoped_lock lock(mutex_);
    return status_;
}

std::vector<fs::path> CaptureSession::take_finished() {
    std::scoped_lock lock(mutex_);
    return std::exchange(finished_, {});
}

std::optional<CaptureSession::End> CaptureSession::take_end() {
    std::scoped_lock lock(mutex_);
    return std::exchange(end_, std::nullopt);
}

void CaptureSession::run(const std::vector<profiler::Request>& requests) {
    bool all = true;
    for (size_t i = 0; i < requests.size() && all; ++i) all = run_one(requests[i], i);
    if (all) {
        end(profiler::Severity::kInfo, requests.size() == 1
                                           ? std::string("Captured one trace.")
                                           : fmt::format("Captured {} traces.", requests.size()));
    }
}

bool CaptureSession::run_one(const profiler::Request& request, size_t index) {
    {
        std::scoped_lock lock(mutex_);
        status_.curves.push_back({.recipe = request.workload.value("recipe_name", "")});
    }
    auto worker = profiler::WorkerClient::start();
    if (!worker) {
        end(profiler::Severity::kError, worker.error().message);
        return false;
    }
    {
        std::scoped_lock lock(mutex_);
        worker_ = &*worker;
        if (cancelled_) worker->cancel();
    }
    const auto outcome = worker->run(
        request,
        {.progress = [&](const profiler::Progress& progress) { on_progress(progress, index); },
         .sample = [this](const profiler::Sample& sample) { on_sample(sample); }});
    {
        std::scoped_lock lock(mutex_);
        worker_ = nullptr;
        status_.log += worker->log();
        if (outcome) {
            status_.curves.back().finished = true;
            finished_.emplace_back(outcome->path);
        }
    }
    if (!outcome) {
        const profiler::ErrorFrame& error = outcome.error();
        end(error.cancelled ? profiler::Severity::kWarning : profiler::Severity::kError,
            error.message);
    }
    wake_window();
    return outcome.has_value();
}

void CaptureSession::on_progress(const profiler::Progress& progress, size_t index) {
    {
        std::scoped_lock lock(mutex_);
        const double own = progress.total > 0 ? static_cast<double>(progress.done) /
                                                    static_cast<double>(progress.total)
                                              : 0;
        status_.stage = progress.total > 0 ? fmt::format("{} {} of {}", progress.stage,
                                                         progress.done, progress.total)
                                           : progress.stage;
        status_.share = std::max(status_.share, (static_cast<double>(index) + own) /
                                                    static_cast<double>(status_.recipe_count));
    }
    wake_window();
}

void CaptureSession::on_sample(const profiler::Sample& sample) {
    {
        std::scoped_lock lock(mutex_);
        CaptureStatus::Curve& curve = status_.curves.back();
        curve.time_ns.push_back(static_cast<double>(sample.time_ns));
        curve.allocated_bytes.push_back(static_cast<double>(sample.allocated_bytes));
        curve.peak_bytes = std::max(curve.peak_bytes, sample.peak_bytes);
        status_.phase = sample.phase;
    }
    wake_window();
}

void CaptureSession::end(profiler::Severity severity, std::string text) {
    {
        std::scoped_lock lock(mutex_);
        status_.running = status_.cancelling = false;
        status_.share = severity == profiler::Severity::kInfo ? 1 : status_.share;
        status_.stage.clear();
        status_.phase.clear();
        status_.error = severity == profiler::Severity::kInfo ? "" : text;
        end_ = End{severity, std::move(text)};
    }
    wake_window();
}

}  // namespace app
