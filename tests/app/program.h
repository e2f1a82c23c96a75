#pragma once

#include "profiler/trace/trace.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

/// Runs the built `temposcope` and holds its output.
namespace tests {

/// The words of a text that spaces separate.
std::vector<std::string> words(const std::string& text);
std::vector<std::string> joined(std::vector<std::string> words,
                                const std::vector<std::string>& more);

struct Ran {
    int exit_code = -1;
    std::string out;
    std::string err;

    nlohmann::json json()
        const;  // parses standard output; if it is no JSON, fails the test and returns null
};

struct Surroundings {
    std::vector<std::string> environment;  // such as "LC_ALL=de_DE.UTF-8", added to the test's own
    std::string out_file;                  // receives standard output, such as "/dev/full"
    std::string shell_setup;               // what sh does before it, such as "exec 2>&-"
};

/// `started` is called with the process while it runs.
Ran run(const std::vector<std::string>& arguments, const Surroundings& surroundings = {},
        const std::function<void(pid_t)>& started = {});

/// Expects the exit code 0.
Ran run_well(const std::vector<std::string>& arguments, const Surroundings& surroundings = {});

/// Waits until the program, a child of this process, has started a worker: from then on a signal
/// cancels its work.
void wait_for_worker(pid_t pid);
bool is_ignored(pid_t pid, int number);

/// Expects a failure with this exit code, an empty standard output and one sentence on standard
/// error that contains `part`.
void expect_one_sentence(const Ran& ran, int exit_code, const std::string& part = {});

/// All bytes of a file; empty if it cannot be read.
std::string read_file(const std::filesystem::path& path);
std::vector<std::string> lines_of(const std::filesystem::path& path);

/// A folder that is deleted after the test.
class CommandFolder {
public:
    CommandFolder();
    ~CommandFolder();
    CommandFolder(const CommandFolder&) = delete;
    CommandFolder& operator=(const CommandFolder&) = delete;

    std::string operator/(const std::string& name) const { return (path_ / name).string(); }
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

/// A test of commands in a folder of its own.
class CommandTest : public testing::Test {
protected:
    /// The settings of a user who has none, and a worker without torch. `act` is what the worker
    /// does to a capture (fake_worker.cpp).
    Surroundings with_fake_worker(const std::string& act = "") const;

    CommandFolder folder_;
};

/// A small BERT step of three layers, written as a file; `scale` multiplies the saved bytes.
struct SampleSpec {
    std::string recipe = "original";
    int64_t scale = 1;
    std::vector<std::pair<int64_t, std::vector<int64_t>>>
        sweep;  // batch, step times (empty: out of memory)
    bool complete = true;
    int steps = 2;
    int64_t batch_size = 2;
    bool is_predicted = false;
};
profiler::Trace make_sample(const SampleSpec& spec = {});
std::string write_sample(const CommandFolder& folder, const std::string& name,
                         const SampleSpec& spec = {});

}  // namespace tests
