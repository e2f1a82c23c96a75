#include "tests/app/program.h"

#include "profiler/analysis/step/closed_form.h"
#include "profiler/trace/file/trace_file.h"
#include "tests/support/trace_builder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

extern char** environ;

namespace tests {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (std::string& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
}

/// Whether a mask of signals of a process has this one: "SigCgt", "SigIgn".
bool has_signal(pid_t pid, const std::string& mask, int number) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(status, line);) {
        if (!line.starts_with(mask + ":")) continue;
        return std::stoull(line.substr(mask.size() + 1), nullptr, 16) >> (number - 1) & 1;
    }
    return false;
}

bool has_child(pid_t parent) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        std::string status;
        std::getline(std::ifstream(entry.path() / "stat"), status);
        // "PID (NAME) STATE PARENT ..."; the name may hold spaces and brackets
        std::istringstream behind_name(status.substr(std::min(status.rfind(')'), status.size())));
        std::string bracket, state;
        pid_t its_parent = 0;
        if (behind_name >> bracket >> state >> its_parent && its_parent == parent) return true;
    }
    return false;
}

bool is_program(pid_t pid) {
    std::error_code error;
    const auto file = std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", error);
    return !error && file.filename() == "temposcope";
}

}  // namespace

std::vector<std::string> words(const std::string& text) {
    std::istringstream stream(text);
    return {std::istream_iterator<std::string>(stream), {}};
}

std::vector<std::string> joined(std::vector<std::string> words,
                                const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

void wait_for_worker(pid_t pid) {
    while (!is_program(pid) || !has_child(pid)) {
        siginfo_t ended{};
        ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT), 0);
        ASSERT_EQ(ended.si_pid, 0) << "it ended before it started a worker";
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

bool is_ignored(pid_t pid, int number) { return has_signal(pid, "SigIgn", number); }

std::string read_file(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return std::move(text).str();
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
    std::vector<std::string> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
}

nlohmann::json Ran::json() const {
    auto parsed = nlohmann::json::parse(out, nullptr, /*allow_exceptions=*/false);
    EXPECT_FALSE(parsed.is_discarded()) << out << err;
    return parsed.is_discarded() ? nlohmann::json() : parsed;
}

Ran run(const std::vector<std::string>& arguments, const Surroundings& surroundings,
        const std::function<void(pid_t)>& started) {
    const CommandFolder folder;
    std::vector<std::string> words{TEMPOSCOPE_BINARY_DIR "/temposcope"};
    if (!surroundings.shell_setup.empty()) {
        words.insert(words.begin(),
                     {"/bin/sh", "-c", surroundings.shell_setup + "; exec \"$0\" \"$@\""});
    }
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<std::string> environment = surroundings.environment;
    for (char** variable = environ; *variable != nullptr; ++variable)
        environment.emplace_back(*variable);
    const bool redirected = !surroundings.out_file.empty();
    const std::string out = redirected ? surroundings.out_file : folder / "out";
    const std::string err = folder / "err";

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT,
                                     0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT,
                                     0600);
    pid_t pid = 0;
    const int error = posix_spawn(&pid, words[0].c_str(), &actions, nullptr, pointers(words).data(),
                                  pointers(environment).data());
    posix_spawn_file_actions_destroy(&actions);
    EXPECT_EQ(error, 0) << words[0] << " does not start";
    if (error == 0 && started) started(pid);
    int status = 0;
    if (error != 0 || waitpid(pid, &status, 0) != pid) return {};
    return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            .out = redirected ? std::string() : read_file(out),
            .err = read_file(err)};
}

Ran run_well(const std::vector<std::string>& arguments, const Surroundings& surroundings) {
    Ran ran = run(arguments, surroundings);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return ran;
}

void expect_one_sentence(const Ran& ran, int exit_code, const std::string& part) {
    using namespace testing;
    EXPECT_EQ(ran.exit_code, exit_code) << ran.err;
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, AllOf(StartsWith("temposcope: "), HasSubstr(part)));
    EXPECT_THAT(ran.err, AnyOf(EndsWith(".\n"), EndsWith("?\n")));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
}

CommandFolder::CommandFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "temposcope-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
}

CommandFolder::~CommandFolder() {
    std::error_code ignored;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path_, ignored);
}

Surroundings CommandTest::with_fake_worker(const std::string& act) const {
    return {.environment = {"XDG_CONFIG_HOME=" + (folder_ / "config"),
                            "TEMPOSCOPE_WORKER=" TEMPOSCOPE_BINARY_DIR
                            "/tests/fake_worker_for_commands",
                            "TEMPOSCOPE_FAKE=" + act}};
}

profiler::Trace make_sample(const SampleSpec& spec) {
    models::Workload w;
    w.model = models::find_model("bert-base").value();
    w.model.num_layers = 3;
    w.model.hidden_size = 64;
    w.model.num_heads = 2;
    w.model.intermediate_size = 256;
    w.recipe_name = spec.recipe;
    w.recipe = models::parse_recipe(spec.recipe).value();
    w.batch_size = spec.batch_size;
    w.seq_len = 16;
    TraceBuilder b(w);
    std::vector<Id<ModulePath>> layers;
    for (int64_t i = 0; i < 3; ++i)
        layers.push_back(b.module_path("encoder.layer." + std::to_string(i), i));
    b.allocate({.bytes = 4096,
                .category = Category::kParameter,
                .name = "encoder.layer.0.output.dense.weight"});
    const ClosedForm form = closed_form_of_layer(w, /*on_cpu=*/true).value();
    for (int step = 0; step < spec.steps; ++step) {
        b.begin_step();
        b.begin_phase(PhaseKind::kForward);
        std::vector<std::pair<Id<Allocation>, Id<Save>>> kept;
        for (const Id<ModulePath> layer : layers) {
            for (const ClosedFormRow& row : form.rows) {
                const auto op = b.op("aten::addmm", layer);
                const auto allocation = b.allocate({.bytes = row.size_bytes * spec.scale,
                                                    .category = Category::kActivation,
                                                    .op = op,
                                                    .name = row.tensor,
                                                    .shape = "[2, 16, 64]"});
                kept.emplace_back(allocation, b.save(allocation, op));
            }
        }
        b.end_phase();
        b.begin_phase(PhaseKind::kBackward);
        for (auto [allocation, save] : kept) {
            b.release(save);
            b.free(allocation);
        }
        b.end_phase();
        b.end_step(0.25);
    }
    for (const auto& [batch_size, times_ns] : spec.sweep) {
        const auto point = b.trace().sweep_points.append(
            {.batch_size = batch_size,
             .outcome = times_ns.empty() ? SweepOutcome::kOutOfMemory : SweepOutcome::kOk,
             .peak_allocated_bytes = 1000 * batch_size});
        for (const int64_t ns : times_ns)
            b.trace().sweep_samples.append({.point = point, .step_time_ns = ns});
    }
    if (spec.is_predicted) {
        b.trace().runs.set<&profiler::Run::source>(Id<profiler::Run>(0), Source::kPredicted);
        b.trace().runs.set<&profiler::Run::num_threads>(Id<profiler::Run>(0), 0);
    }
    if (!spec.complete) {
        b.trace().runs.set<&profiler::Run::state>(Id<profiler::Run>(0), RunState::kIncomplete);
    }
    return b.finish();
}

std::string write_sample(const CommandFolder& folder, const std::string& name,
                         const SampleSpec& spec) {
    const std::string path = folder / name;
    const auto written = profiler::write_trace(make_sample(spec), path);
    EXPECT_TRUE(written) << written.error().message;
    return path;
}

}  // namespace tests
