#include "profiler/trace/file/trace_file.h"
#include "tests/app/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

/// A file that cannot be read or written is reported in one sentence with exit code 1. Nothing is
/// printed on standard output and no partial file remains.
namespace {

using namespace tests;
using namespace profiler;
using testing::HasSubstr;

using BadInput = CommandTest;

void expect_failure(const Ran& ran, const std::string& part) {
    expect_one_sentence(ran, 1, part);
    EXPECT_THAT(ran.err, testing::EndsWith(".\n"));
}

void write(const std::string& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

TEST_F(BadInput, EveryReaderNamesAFileThatIsNotThere) {
    const std::string missing = folder_ / "missing.tscope";
    for (const auto& arguments : std::vector<std::vector<std::string>>{
             {"info", missing},
             {"info", missing, "--json"},
             {"info", missing, "--ledger", "--json"},
             {"compare", missing, "--json"},
             {"open", missing},
             {"export", missing, "--to", "csv", "-o", folder_ / "x.csv"}}) {
        expect_failure(run(arguments), missing);
    }
    EXPECT_FALSE(std::filesystem::exists(folder_ / "x.csv"));
}

TEST_F(BadInput, AFileOfAnotherKindIsRefused) {
    write(folder_ / "text.tscope", "Dear diary,\n");
    expect_failure(run({"info", folder_ / "text.tscope"}), "text.tscope");
    write(folder_ / "empty.tscope", "");
    expect_failure(run({"info", folder_ / "empty.tscope"}), "empty.tscope");
}

TEST_F(BadInput, ATruncatedFileIsRefusedWhereverItEnds) {
    const std::string whole = write_sample(folder_, "whole.tscope");
    const auto size = std::filesystem::file_size(whole);
    for (const auto part : {size / 10, size / 2, size - 1}) {
        const std::string cut = folder_ / "cut.tscope";
        std::filesystem::copy_file(whole, cut, std::filesystem::copy_options::overwrite_existing);
        std::filesystem::resize_file(cut, part);
        expect_failure(run({"info", cut, "--json"}), "cut.tscope");
    }
}

TEST_F(BadInput, OneBadFileAmongManyStopsTheComparison) {
    const std::string good = write_sample(folder_, "good.tscope");
    write(folder_ / "bad.tscope", "no");
    expect_failure(run({"compare", good, folder_ / "bad.tscope", "--json"}), "bad.tscope");
}

TEST_F(BadInput, AFolderWithoutTracesSaysSo) {
    expect_failure(run({"compare", folder_.path().string()}), "holds no trace (.tscope");
}

TEST_F(BadInput, AnOutputThatCannotBeWrittenLeavesNothing) {
    const std::string sample = write_sample(folder_, "sample.tscope");
    expect_failure(run({"export", sample, "--to", "csv", "-o", sample + "/x.csv"}), "x.csv");
    expect_failure(run({"export", sample, "--to", "csv", "-o", folder_.path().string()}),
                   folder_.path().string());
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1)
        << "only the sample";
}

TEST_F(BadInput, AnExportNeverOverwritesATrace) {
    const std::string sample = write_sample(folder_, "sample.tscope");
    std::filesystem::create_symlink(sample, folder_ / "link");
    std::filesystem::create_symlink(write_sample(folder_, "second.tscope"), folder_ / "chart.svg");
    for (const std::string& output :
         {sample, folder_ / "other.tscope", folder_ / "link", folder_ / "chart.svg",
          folder_ / "killed.tscope.partial", folder_ / "killed.tscope.partial.1",
          folder_ / "killed.tscope.partial-wal", folder_ / "killed.tscope.partial-shm",
          folder_ / "running.tscope-journal"}) {
        const Ran ran = run({"export", sample, "--to", "svg", "-o", output});
        EXPECT_EQ(ran.exit_code, 2) << output;
        EXPECT_THAT(ran.err, HasSubstr("would replace")) << output;
    }
    EXPECT_FALSE(std::filesystem::exists(folder_ / "killed.tscope.partial-wal"));
    run_well({"info", sample});
}

TEST_F(BadInput, ControlCharactersOfANameDoNotReachTheTerminal) {
    const Ran ran = run({"info", "x\x1b[31m"});
    EXPECT_EQ(ran.exit_code, 1);
    EXPECT_EQ(ran.err.find('\x1b'), std::string::npos);
    EXPECT_THAT(ran.err, HasSubstr("\\x1b"));
}

constexpr const char* kHostile = "\x1b[31m\a\r\n\xe2\x80\xae\xc2\x9b";

/// A trace whose names are made to act on a terminal.
std::string write_hostile_sample(const CommandFolder& folder) {
    Trace trace = make_sample();
    const StringId hostile = trace.strings.intern(kHostile);
    trace.runs.set<&profiler::Run::recipe>(Id<profiler::Run>(0), hostile);
    trace.runs.set<&profiler::Run::device_name>(Id<profiler::Run>(0), hostile);
    trace.module_paths.set<&ModulePath::path>(Id<ModulePath>(0), hostile);
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        trace.ops.set<&Op::name>(Id<Op>(i), hostile);
    }
    add_diagnostic(trace, {.code = "hostile", .explanation = kHostile});
    const std::string file = folder / (std::string("trace") + kHostile + ".tscope");
    const auto written = write_trace(trace, file);
    EXPECT_TRUE(written) << written.error().message;
    return file;
}

void expect_nothing_acts(const std::string& text) {
    EXPECT_TRUE(std::none_of(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f;
    })) << text;
    EXPECT_EQ(text.find("\xe2\x80\xae"), std::string::npos);
    EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos);
}

void expect_harmless(const std::string& text) {
    expect_nothing_acts(text);
    EXPECT_THAT(text, HasSubstr("\\x1b[31m\\x07\\x0d\\x0a\\u202e\\u009b"));
}

TEST_F(BadInput, TextOfATraceDoesNotReachTheTerminalAsItIs) {
    const std::string file = write_hostile_sample(folder_);
    for (const auto& arguments : std::vector<std::vector<std::string>>{
             {"info", file},
             {"info", file, "--ledger", "--peak", "--by", "op", "--health"},
             {"compare", file, file, "--by", "op"},
             {"replay", file},
             {"view", file, "-o", folder_ / (std::string(kHostile) + ".html")},
             {"export", file, "--to", "csv", "-o", folder_ / (std::string(kHostile) + ".csv")}}) {
        const Ran ran = run_well(arguments);
        expect_harmless(ran.out);
    }
    const Ran json = run({"info", file, "--json"});
    EXPECT_EQ(json.json()["recipe"], kHostile) << "the text is the same";
    expect_nothing_acts(json.out);
}

TEST_F(BadInput, TextOfATraceDoesNotReachATableAsItIs) {
    const std::string file = write_hostile_sample(folder_);
    const std::string csv = folder_ / "out.csv";
    for (const char* table : {"ops", "ledger", "allocations"}) {
        run_well({"export", file, "--to", "csv", "--table", table, "-o", csv});
        expect_harmless(read_file(csv));
    }
}

TEST_F(BadInput, ALongNameDoesNotWidenEachRow) {
    Trace trace = make_sample();
    const std::string name = "begin" + std::string(1'000'000, 'x') + "end";
    trace.module_paths.set<&ModulePath::path>(Id<ModulePath>(0), trace.strings.intern(name));
    const std::string file = folder_ / "long.tscope";
    ASSERT_TRUE(write_trace(trace, file));
    const Ran ran = run_well({"info", file, "--ledger", "--all"});
    EXPECT_LT(ran.out.size(), name.size());
    EXPECT_THAT(ran.out, HasSubstr("begin"));
    EXPECT_THAT(ran.out, HasSubstr("…"));
}

TEST_F(BadInput, AFileThatDoesNotFitTheMemorySaysSoWithItsOwnExitCode) {
    const Surroundings small_memory{.shell_setup = "ulimit -v 2000000"};  // KiB
    if (run({"--version"}, small_memory).exit_code != 0) {
        GTEST_SKIP() << "this build does not start with so little memory";
    }
    const std::string file = folder_ / "large.json";  // JSON is read at once
    write(file, "{\"segments\": [");
    std::filesystem::resize_file(file, 3'000'000'000);
    for (const char* command : {"info", "replay", "compare"}) {
        expect_one_sentence(run({command, file, "--json"}, small_memory), 3,
                            "not enough memory to read " + file + ": close other programs");
    }
    std::filesystem::resize_file(file, uintmax_t{4} << 40);
    expect_one_sentence(run({"info", file, "--json"}), 3, "open it on a larger machine");
}

TEST_F(BadInput, AFullDiskUnderStandardOutputIsAFailure) {
    const std::string sample = write_sample(folder_, "sample.tscope");
    const Ran ran = run({"info", sample, "--json"}, {.out_file = "/dev/full"});
    EXPECT_EQ(ran.exit_code, 1);
    EXPECT_THAT(ran.err, HasSubstr("could not be written"));
}

TEST_F(BadInput, ACaptureIntoAFileNamedLikeItsFolderIsRefused) {
    write(folder_ / "taken", "");
    expect_failure(run({"capture", "--model", "bert-base", "-o", folder_ / "taken"}), "taken");
}

/// If only the workload of a file is impossible, the file opens without the results that need the
/// workload.
TEST_F(BadInput, AnImpossibleWorkloadDoesNotCrash) {
    const std::string file = folder_ / "damaged.tscope";
    for (const char* size : {"0", "-64", "9223372036854775807", "1e300"}) {
        Trace trace = make_sample();
        std::string workload(trace.text(trace.run().workload));
        const std::string sound = R"("hidden_size":64)";
        workload.replace(workload.find(sound), sound.size(),
                         R"("hidden_size":)" + std::string(size));
        trace.runs.set<&profiler::Run::workload>(Id<profiler::Run>(0),
                                                 trace.strings.intern(workload));
        ASSERT_TRUE(write_trace(trace, file));
        for (const char* report : {"--json", "--ledger", "--peak", "--health"}) {
            const Ran ran = run({"info", file, report});
            EXPECT_EQ(ran.exit_code, 0) << size << " " << report << ": " << ran.err;
        }
        EXPECT_TRUE(run({"info", file, "--json"}).json()["closed_form"].is_null());
        EXPECT_THAT(run({"compare", file, file}).out, HasSubstr("does not say which workload"));
    }
}

TEST_F(BadInput, ATraceNeverTakesThePlaceOfAPipe) {
    const std::string sample = write_sample(folder_, "sample.tscope");
    const std::string pipe = folder_ / "pipe.tscope", link = folder_ / "link.tscope";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    std::filesystem::create_symlink(pipe, link);
    for (const std::string& output : {pipe, link}) {
        expect_failure(run({"import", sample, "--overwrite", "-o", output}), "a device or a pipe");
    }
    EXPECT_TRUE(std::filesystem::is_fifo(pipe));
    EXPECT_TRUE(std::filesystem::is_symlink(link));
}

const std::vector<std::string> kBench{"bench",  "matmul", "--device", "predict:v100-16gb",
                                      "--size", "512"};

/// Commands whose -o is a table.
std::vector<std::vector<std::string>> writers_of_tables(const std::string& sample) {
    return {{"plan", "--model", "bert-base", "--layers", "1", "--gpu", "t4", "--batch", "1"},
            kBench,
            {"movement", sample}};
}

TEST_F(BadInput, ResultsNeverReplaceARecordingOfAnyFormat) {
    const std::string sample = write_sample(folder_, "sample.tscope");
    const std::string profile = folder_ / "profile.json", snapshot = folder_ / "snapshot.json";
    write(profile, R"({"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "aten::mm"}]})");
    write(snapshot, R"({"segments": [], "device_traces": []})");
    for (const std::string& recording : {profile, snapshot}) {
        const std::string before = read_file(recording);
        for (const std::vector<std::string>& command : writers_of_tables(sample)) {
            expect_one_sentence(run(joined(command, {"-o", recording})), 2,
                                "names a trace or a part of one");
        }
        EXPECT_EQ(read_file(recording), before);
    }
}

TEST_F(BadInput, ResultsNeverReplaceAFileOfAnotherKindBehindALink) {
    const std::string sample = write_sample(folder_, "sample.tscope");
    const std::string program = folder_ / "train.py", link = folder_ / "table.csv";
    write(program, "import torch");
    std::filesystem::create_symlink(program, link);
    for (const std::vector<std::string>& command : writers_of_tables(sample)) {
        expect_one_sentence(run(joined(command, {"-o", link})), 2,
                            "train.py, to which " + link + " leads, is there already");
    }
    EXPECT_EQ(read_file(program), "import torch");
}

/// Commands whose last word is an output of another kind.
std::vector<std::vector<std::string>> writers_of_others(const std::string& sample) {
    return {{"export", sample, "--to", "svg", "-o", "memory.svg"},
            {"export", sample, "--to", "chrome", "-o", "memory.json"},
            {"import", sample, "-o", "copy.tscope"},
            {"view", sample, "-o", "page.html"},
            {"compare", sample, "--charts", "charts"}};
}

/// Not plan, which needs the worker, and not movement, which needs more than the sample has.
TEST_F(BadInput, ACommandThatASampleIsEnoughForMakesTheFolderOfItsOutput) {
    auto commands = writers_of_others(write_sample(folder_, "sample.tscope"));
    commands.push_back(joined(kBench, {"-o", "t.csv"}));
    for (std::size_t i = 0; i < commands.size(); ++i) {
        std::vector<std::string> command = commands[i];
        command.back().insert(0, folder_ / fmt::format("new/{}/", i));
        run_well(command);
        EXPECT_TRUE(std::filesystem::exists(command.back())) << command.back();
    }
}

TEST_F(BadInput, WhereNoFolderCanBeEachCommandSaysSo) {
    const std::string sample = write_sample(folder_, "sample.tscope");
    auto commands = writers_of_others(sample);
    for (const auto& command : writers_of_tables(sample)) {
        commands.push_back(joined(command, {"-o", "t.csv"}));
    }
    write(folder_ / "file", "x");
    for (std::vector<std::string>& command : commands) {
        command.back().insert(0, folder_ / "file/");
        expect_one_sentence(run(command), 1, "cannot be made: Not a directory; a part of its path");
    }
}

/// Notices whoever opens a file.
class WatchedFile {
public:
    explicit WatchedFile(const std::string& path) : queue_(inotify_init1(IN_NONBLOCK)) {
        EXPECT_GE(inotify_add_watch(queue_, path.c_str(), IN_OPEN), 0);
    }
    ~WatchedFile() { ::close(queue_); }
    WatchedFile(const WatchedFile&) = delete;
    WatchedFile& operator=(const WatchedFile&) = delete;

    bool was_opened() const {
        alignas(inotify_event) std::array<char, 4096> events{};
        return ::read(queue_, events.data(), events.size()) > 0;
    }

private:
    const int queue_;
};

TEST_F(BadInput, FilesThatATraceNamesAreNeverOpened) {
    const std::string named = folder_ / "train.py", trace = folder_ / "trace.json";
    write(named, "import torch");
    const WatchedFile watched(named);
    write(trace, R"({"segments": [], "device_traces": [[
        {"action": "alloc", "addr": 4096, "size": 512, "stream": 0, "time_us": 1,
         "frames": [{"name": "main", "filename": ")" +
                     named + R"(", "line": 1}]}]]})");
    const std::string page = folder_ / "page.html", table = folder_ / "table.csv";
    for (const auto& arguments :
         std::vector<std::vector<std::string>>{{"info", trace, "--json"},
                                               {"view", trace, "-o", page},
                                               {"export", trace, "--to", "csv", "-o", table},
                                               {"import", trace, "-o", folder_ / "trace.tscope"}}) {
        const Ran ran = run(arguments);
        EXPECT_EQ(ran.exit_code, 0) << arguments[0] << ": " << ran.err;
    }
    EXPECT_THAT(read_file(page), HasSubstr("train.py")) << "the name is shown";
    EXPECT_FALSE(watched.was_opened());
    EXPECT_EQ(read_file(named), "import torch");
    EXPECT_TRUE(watched.was_opened()) << "it would have been noticed";
}

}  // namespace
