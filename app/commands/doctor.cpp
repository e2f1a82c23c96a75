#include "app/commands/command.h"
#include "app/commands/console/report.h"
#include "app/prediction/trace_workers.h"
#include "app/programs/program_run.h"
#include "models/config/names.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/protocol/worker_client.h"
#include "profiler/trace/file/trace_file.h"
#include "profiler/trace/units.h"

#include <dlfcn.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace app {
namespace {

using namespace profiler;

enum class CheckStatus : uint8_t { kOk, kWarning, kMissing };
inline constexpr std::array<std::string_view, 3> kCheckStatusNames{"ok", "warning", "missing"};
constexpr std::string_view name_of(CheckStatus s) {
    return kCheckStatusNames[static_cast<size_t>(s)];
}

struct MachineCheck {
    std::string name;  // "worker", "torch", "driver", "display"
    CheckStatus status = CheckStatus::kOk;
    std::string detail;  // "2.11.0"
    std::string remedy;  // one sentence on what to do; empty if nothing
};

struct MachineReport {
    std::vector<MachineCheck> checks;
    bool can_capture = false;  // at least on the CPU
};

/// The value of the first line "key : value" of a file under /proc.
std::string proc_value(const char* path, std::string_view key) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        const std::size_t colon = line.find(':');
        if (!line.starts_with(key) || colon == std::string::npos) continue;
        const std::size_t start = line.find_first_not_of(" \t", colon + 1);
        return start == std::string::npos ? std::string() : line.substr(start);
    }
    return {};
}

MachineCheck check_program() {
    return {.name = "temposcope",
            .detail = fmt::format("{}, trace format {}", TEMPOSCOPE_VERSION, kTraceFormatVersion)};
}

MachineCheck check_processor() {
    const std::string model = proc_value("/proc/cpuinfo", "model name");
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return {.name = "processor",
            .detail = fmt::format("{}, {} logical {}", model.empty() ? "unknown" : model,
                                  processors, processors == 1 ? "processor" : "processors")};
}

MachineCheck check_memory() {
    const auto bytes = [](std::string_view key) {
        return 1024 * std::strtoll(proc_value("/proc/meminfo", key).c_str(), nullptr, 10);
    };
    return {.name = "memory",
            .detail = fmt::format("{}, {} available", format_bytes(bytes("MemTotal")),
                                  format_bytes(bytes("MemAvailable")))};
}

MachineCheck check_display() {
    const char* display = std::getenv("DISPLAY");
    if (display != nullptr && *display != '\0') return {.name = "display", .detail = display};
    return {.name = "display",
            .status = CheckStatus::kMissing,
            .detail = "DISPLAY is not set, the window cannot open",
            .remedy = "Commands and exported charts need none; ssh -X or xvfb-run give one."};
}

/// GLFW and ImGui open these libraries with the window, and no other command needs them.
MachineCheck check_window() {
    for (const char* library : {"libX11.so.6", "libGL.so.1"}) {
        void* const opened = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
        if (opened == nullptr) {
            return {
                .name = "window",
                .status = CheckStatus::kMissing,
                .detail = fmt::format("{} is not installed, the window cannot open", library),
                .remedy =
                    "On Debian and Ubuntu: apt-get install libgl1 libgl1-mesa-dri. Commands and "
                    "exported charts need neither."};
        }
        dlclose(opened);
    }
    return {.name = "window", .detail = "X11 and OpenGL are installed"};
}

/// The checks that need libtorch (PyTorch, CUDA, driver, CUPTI) come from the worker, under
/// "checks".
void check_worker(MachineReport& report) {
    const auto missing = [&](std::string remedy) {
        report.checks.push_back({.name = "worker",
                                 .status = CheckStatus::kMissing,
                                 .detail = "captures cannot run",
                                 .remedy = std::move(remedy)});
    };
    auto worker = WorkerClient::start();
    if (!worker) return missing(worker.error().message);
    const auto outcome = worker->run({.kind = RequestKind::kDoctor});
    if (!outcome) return missing(outcome.error().message);
    report.can_capture = true;
    report.checks.push_back({.name = "worker", .detail = std::string(build_version())});
    for (const auto& check : outcome->summary.value("checks", nlohmann::json::array())) {
        const auto status =
            models::find_name<CheckStatus>(kCheckStatusNames, check.value("status", ""));
        report.checks.push_back({.name = check.value("name", ""),
                                 .status = status.value_or(CheckStatus::kWarning),
                                 .detail = check.value("detail", ""),
                                 .remedy = check.value("remedy", "")});
    }
}

/// What a command prints on standard output; empty if it fails.
std::string output_of(const std::string& command) {
    std::string text;
    FILE* const pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return text;
    std::array<char, 4096> part{};
    while (const std::size_t size = fread(part.data(), 1, part.size(), pipe)) {
        text.append(part.data(), size);
    }
    return pclose(pipe) == 0 ? text : std::string();
}

std::string as_shell_word(std::string_view word) {
    std::string text = "'";
    for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
    return text + "'";
}

/// The torch of the user's Python, which programs under `temposcope run` import, and the libraries
/// that serve it. The worker's own torch is another check.
MachineCheck check_own_torch() {
    MachineCheck check{.name = "your torch", .status = CheckStatus::kWarning};
    const auto package = find_python_package();
    if (!package) return check.detail = package.error().message, check;
    const std::string python = python_interpreter();
    const auto told = nlohmann::json::parse(
        output_of(fmt::format("PYTHONSAFEPATH=1 {} {} 2>/dev/null", as_shell_word(python),
                              as_shell_word((*package / "_torch_folders.py").string()))),
        nullptr, /*allow_exceptions=*/false);
    if (!told.is_object() || !told.contains("torch")) {
        check.detail = fmt::format("{} could not be asked for its torch", python);
        check.remedy =
            fmt::format("{} {} says why.", python, (*package / "_torch_folders.py").string());
        return check;
    }
    if (told["torch"].is_null()) {
        check.detail = fmt::format("{} has none", python);
        check.remedy = "temposcope run records programs of an environment with torch: activate it.";
        return check;
    }
    check.detail = fmt::format("{} in {}", told.value("torch", ""), told.value("torch_folder", ""));
    if (told["libraries"].is_null()) {
        const bool is_built = told.value("is_built_at_first_use", false);
        check.detail += ", for which nothing is built";
        check.remedy = is_built
                           ? "The first recording builds its libraries, once, in about 5 minutes."
                           : fmt::format("Recordings say: {}.", told.value("sentence", ""));
        return check;
    }
    check.detail += fmt::format(", served by {}", told.value("libraries", ""));
    const std::string tested_on = told.value("tested_on", "");
    if (tested_on.empty()) {
        check.remedy = "Nothing was tested with this version of torch.";
    } else {
        check.status = CheckStatus::kOk;
        check.detail += fmt::format(", tested on {}", tested_on);
    }
    return check;
}

/// Errors: the first check that fails in a worker on a virtual GPU.
models::Result<void> try_virtual_gpu() {
    auto worker = start_worker_on({virtual_card(built_in_planner_data().gpus.front())});
    if (!worker) return tl::unexpected(worker.error());
    const auto outcome = worker->run({.kind = RequestKind::kDoctor});
    if (!outcome) return models::fail("{}", outcome.error().message);
    for (const auto& check : outcome->summary.value("checks", nlohmann::json::array())) {
        if (check.value("status", "") == "ok") continue;
        return models::fail("{}: {}", check.value("name", ""), check.value("detail", ""));
    }
    return {};
}

MachineCheck check_virtual_gpu() {
    if (const auto tried = try_virtual_gpu(); !tried) {
        return {
            .name = "simulated GPU",
            .status = CheckStatus::kMissing,
            .detail = tried.error().message,
            .remedy =
                "Without it no step is predicted for a GPU; build or install Temposcope again."};
    }
    return {.name = "simulated GPU",
            .detail = "PyTorch's CUDA code runs on it; cuSOLVER, cuFFT and cuSPARSE refuse"};
}

MachineReport examine_machine() {
    MachineReport report;
    report.checks.push_back(check_program());
    check_worker(report);
    if (report.can_capture) report.checks.push_back(check_virtual_gpu());
    report.checks.push_back(check_own_torch());
    for (auto* check : {check_processor, check_memory, check_display, check_window})
        report.checks.push_back(check());
    return report;
}

Style style_of(CheckStatus status) {
    switch (status) {
        case CheckStatus::kOk:
            return Style::kGood;
        case CheckStatus::kWarning:
            return Style::kWarning;
        case CheckStatus::kMissing:
            return Style::kBad;
    }
    return Style::kPlain;
}

void print_checks(Output& output, const MachineReport& report) {
    std::size_t name_width = 0;
    for (const MachineCheck& check : report.checks)
        name_width = std::max(name_width, check.name.size());
    for (const MachineCheck& check : report.checks) {
        const std::string status(name_of(check.status));
        output.line(fmt::format("{:<{}}  {}{}  {}", check.name, name_width,
                                output.styled(status, style_of(check.status)),
                                std::string(7 - status.size(), ' '), check.detail));
        if (!check.remedy.empty()) {
            output.line(fmt::format("{:<{}}           {}", "", name_width,
                                    output.styled(check.remedy, Style::kDim)));
        }
    }
    output.line();
    output.line(
        report.can_capture
            ? "Captures on the CPU can run here, and predictions for any GPU (plan, capture "
              "--device predict:GPU)."
            : "Captures and predictions cannot run here: fix the items marked 'missing', then run "
              "temposcope doctor again.");
}

nlohmann::json json_of(const MachineReport& report) {
    nlohmann::json rows = nlohmann::json::array();
    for (const MachineCheck& check : report.checks) {
        rows.push_back({{"name", check.name},
                        {"status", name_of(check.status)},
                        {"detail", check.detail},
                        {"remedy", check.remedy}});
    }
    return {{"version", TEMPOSCOPE_VERSION}, {"can_capture", report.can_capture}, {"rows", rows}};
}

Outcome run_doctor(Output& output) {
    const MachineReport report = examine_machine();
    return emit(output, {.json = [&] { return json_of(report); },
                         .text = [&](Output& text) { print_checks(text, report); }});
}

}  // namespace

void add_doctor_command(CommandLine& line) {
    Command& command =
        line.add_command("doctor", "Say what this machine offers, and what is missing");
    command.footer("Example:\n  temposcope doctor --json\n");
    command.on_run(run_doctor);
}

}  // namespace app
