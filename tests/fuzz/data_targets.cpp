// Data of users and of other programs: the planner's files, a worker's frames, themes, and the
// small languages of the command line.
#include "app/commands/options/command_line.h"
#include "app/commands/options/values.h"
#include "app/user/settings.h"
#include "models/config/layer_recipes.h"
#include "models/config/workload.h"
#include "profiler/allocator/settings.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/protocol/frame.h"
#include "profiler/protocol/messages.h"
#include "profiler/trace/units.h"
#include "profiler/view/theme.h"
#include "profiler/virtual_gpu/cubin.h"
#include "tests/fuzz/fuzz_target.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>

namespace tests {
namespace {

using namespace profiler;

std::string asset(const char* name) {
    std::ostringstream text;
    text << std::ifstream(std::string(TEMPOSCOPE_SOURCE_DIR "/assets/") + name).rdbuf();
    return text.str();
}

void read_planner_data(const std::string& bytes) {
    (void)parse_gpus(bytes, "gpus.json");
    (void)parse_environments(bytes, "setups.json");
    (void)parse_calibration(bytes, "calibration.json");
}

std::vector<std::string> frame_seeds() {
    return {encode_frame({{"protocol", 2}, {"id", 1}, {"kind", "progress"}, {"stage", "step"}}),
            encode_frame({{"protocol", 2}, {"id", 1}, {"kind", "result"}}, "payload")};
}

void read_frames(const std::string& bytes) {
    FrameDecoder decoder;
    decoder.feed(bytes);
    while (true) {
        const auto frame = decoder.next();
        if (!frame || !*frame) return;
        (void)from_header((*frame)->header);
    }
}

/// What is understood is written as the text that means the same.
void read_recipe(const std::string& bytes) {
    const auto recipes = models::parse_layer_recipes(bytes);
    if (!recipes) return;
    const auto again = models::parse_layer_recipes(models::to_text(*recipes));
    if (!again || *again != *recipes) throw std::logic_error("another recipe came back");
}

/// What is understood is written as the JSON that means the same.
void read_workload(const std::string& bytes) {
    const auto json = nlohmann::json::parse(bytes, nullptr, /*allow_exceptions=*/false);
    const auto workload = models::workload_from_json(json);
    if (!workload) return;
    const auto again = models::workload_from_json(models::to_json(*workload));
    if (!again || *again != *workload) throw std::logic_error("another workload came back");
}

/// What is understood is written as the text that means the same.
void read_settings(const std::string& bytes) {
    const app::LoadedSettings loaded = app::parse_settings(bytes, "window.json");
    const auto again = app::parse_settings(app::to_text(loaded.settings), "window.json");
    if (!again.problem.empty() || again.settings != loaded.settings) {
        throw std::logic_error("other settings came back");
    }
}

std::vector<std::string> settings_seeds() {
    app::Settings settings;
    settings.recent_files = {"/data/original.tscope"};
    settings.shown_panels = {{"Ledger", true}};
    settings.further_windows = {{"Ledger 2", {{"filter", "attention"}}}};
    settings.capture_form = {{"batch", "8"}};
    settings.session = {.files = {"/data/original.tscope"},
                        .a = "/data/original.tscope",
                        .gpu = "t4",
                        .planner = {{"batch", "8"}}};
    settings.keys = {{"open", "Ctrl+O"}};
    return {app::to_text(app::Settings()), app::to_text(settings)};
}

/// A program with an option of each kind; each line of the input is one word of the command line.
void read_command_line(const std::string& bytes) {
    std::vector<std::string> words{"temposcope"};
    std::istringstream lines(bytes);
    for (std::string word; std::getline(lines, word);) {
        word.erase(std::find(word.begin(), word.end(), '\0'), word.end());  // as the system does
        (void)app::parse_whole_number(word);
        (void)app::parse_decimal_number(word);
        (void)app::parse_percentage(word, "--percent");
        (void)app::split_list("--list", word);
        (void)parse_bytes(word);
        words.push_back(std::move(word));
    }
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());

    bool all = false;
    int64_t steps = 3;
    std::optional<int64_t> batch;
    std::optional<double> rate;
    std::string recipe = "original", format;
    std::vector<std::string> gpus, formats, files, program;
    app::CommandLine line("temposcope", "1", "a program", "an example");
    app::Command& command = line.add_command("capture", "records");
    command.add({"--all", "a flag"}, &all);
    command.add({"-s,--steps", "a number", "N"}, &steps);
    command.add({"--batch", "a number, or none", "N"}, &batch);
    command.add({.names = "--rate", .help = "needs another", .needs = "--batch"}, &rate);
    command.add({.names = "--recipe", .help = "may be empty", .may_be_empty = true}, &recipe);
    command.add({.names = "--format", .help = "one of some", .choices = {"svg", "png"}}, &format);
    command.add({.names = "--formats", .help = "some", .choices = {"svg", "png"}}, &formats);
    command.add({"--gpu", "a list", "LIST"}, &gpus);
    command.add({.names = "FILE", .help = "files", .is_required = true, .max_values = 4}, &files);
    command.on_run([](app::Output&) { return app::ExitCode::kOk; });
    app::Command& run = line.add_command("run", "another program");
    run.add_program(&program);
    run.on_run([](app::Output&) { return app::ExitCode::kOk; });

    const auto parsed = line.parse(static_cast<int>(pointers.size()), pointers.data());
    if (!parsed && !parsed.error().message.ends_with("--help.")) {
        throw std::logic_error("an error without a remedy: " + parsed.error().message);
    }
    if (parsed && !*parsed && line.answer().empty()) throw std::logic_error("an empty answer");
}

/// What ptxas made of kernels for three generations of GPUs.
std::vector<std::string> cubin_seeds() {
    std::vector<std::string> seeds;
    for (const char* const name : {"sm_80", "sm_90", "sm_100"}) {
        const std::string path = std::string("/tests/profiler/virtual_gpu/cubins/") + name;
        std::ostringstream bytes;
        bytes << std::ifstream(TEMPOSCOPE_SOURCE_DIR + path + ".cubin", std::ios::binary).rdbuf();
        seeds.push_back(std::move(bytes).str());
    }
    return seeds;
}

void read_cubins(const std::string& bytes) {
    (void)virtual_gpu::cubin_bytes(std::as_bytes(std::span(bytes)));
    (void)virtual_gpu::read_cubin(std::as_bytes(std::span(bytes)));
}

const std::array kTargets{
    FuzzTarget{"planner_data",
               [] {
                   return std::vector{asset("gpus.json"), asset("setups.json"),
                                      asset("calibration.json")};
               },
               read_planner_data},
    FuzzTarget{"cubin", cubin_seeds, read_cubins},
    FuzzTarget{"frames", frame_seeds, read_frames},
    FuzzTarget{"theme", [] { return std::vector{asset("themes/dark.json")}; },
               [](const std::string& bytes) { (void)parse_theme(bytes); }},
    FuzzTarget{"settings", settings_seeds, read_settings},
    FuzzTarget{"recipe",
               [] {
                   return std::vector<std::string>{
                       "tempo@0-11", "original+attention=recompute_dropout@0-11,tempo",
                       "gelu=in_place,layernorm=in_place,masks=bit,optimizer=sgd"};
               },
               read_recipe},
    FuzzTarget{"workload", [] { return std::vector{models::to_json(models::Workload()).dump()}; },
               read_workload},
    FuzzTarget{"command_line",
               [] {
                   return std::vector<std::string>{
                       "capture\n--steps\n3\n--batch=4\n--rate\n1e-4\n-s\n5\na.tscope",
                       "capture\n--all\n--formats\nsvg,png\n--gpu\na100,t4\n--recipe=\na\nb",
                       "capture\n--stesp\n3",
                       "help\ncapture",
                       "--version",
                       "run\n--\npython\ntrain.py\n--steps\n3"};
               },
               read_command_line},
    FuzzTarget{"allocator_settings",
               [] {
                   return std::vector<std::string>{"expandable_segments:True,max_split_size_mb:128",
                                                   "roundup_power2_divisions:[256:1,512:2,>:8],"
                                                   "garbage_collection_threshold:0.8"};
               },
               [](const std::string& bytes) { (void)parse_alloc_conf(bytes); }},
};

}  // namespace

std::span<const FuzzTarget> data_targets() { return kTargets; }

}  // namespace tests
