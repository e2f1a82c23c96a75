#include "profiler/analysis/step/peak.h"
#include "profiler/trace/file/trace_file.h"
#include "tests/app/program.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace {

using namespace tests;
using testing::HasSubstr;
using testing::StartsWith;

TEST(ExportCommand, WritesEachTableAsCsv) {
    const TemporaryFolder folder;
    const std::string sample =
        write_sample(folder, "s.tscope", {.sweep = {{4, {2'000'000}}, {5, {}}}});
    const auto csv = [&](const std::string& table) {
        const Ran ran =
            run({"export", sample, "--to", "csv", "--table", table, "-o", folder / "x.csv"});
        EXPECT_EQ(ran.exit_code, 0) << ran.err;
        return read_file(folder / "x.csv");
    };
    const auto lines = [](const std::string& text) {
        return std::count(text.begin(), text.end(), '\n');
    };
    const profiler::Trace trace = make_sample();
    EXPECT_EQ(lines(csv("allocations")), 1 + static_cast<int64_t>(trace.allocations.size()));
    EXPECT_THAT(csv("allocations"),
                StartsWith("alloc_event,free_event,alloc_ns,free_ns,requested_bytes,block_bytes,"
                           "address,step,phase,role,tensor,op,scope,freeing_op,site,role_source,"
                           "device\n"));
    EXPECT_THAT(csv("allocations"), HasSubstr(",1,forward,activation,"));
    EXPECT_EQ(lines(csv("ops")), 1 + static_cast<int64_t>(trace.ops.size()));
    EXPECT_EQ(lines(csv("steps")), 3);
    EXPECT_THAT(csv("steps"),
                StartsWith("step,start_ns,end_ns,step_time_ns,peak_allocated_bytes,loss\n"));
    const int64_t peak = profiler::find_peak(trace).allocated_bytes;
    EXPECT_THAT(csv("steps"), HasSubstr(fmt::format(",{},", peak)));
    EXPECT_EQ(
        csv("sweep"),
        "batch_size,outcome,peak_allocated_bytes,step_time_ns,step_time_min_ns,step_time_max_ns,"
        "throughput_sequences_per_s\n"
        "4,ok,4000,2000000,2000000,2000000,2000\n"
        "5,out_of_memory,5000,0,0,0,0\n");
    EXPECT_THAT(
        csv("ledger"),
        StartsWith(
            "scope,op,tensor,shape,dtype,role,size_bytes,saved_by\n"
            "encoder.layer.0,aten::addmm,hidden_states,\"[2, 16, 64]\",float32,activation,8192,"
            "aten::addmm\n"));
}

TEST(ExportCommand, GuardsNamesThatSpreadsheetsReadAsFormulas) {
    const TemporaryFolder folder;
    profiler::Trace trace = make_sample();
    trace.ops.set<&profiler::Op::name>(profiler::Id<profiler::Op>(0),
                                       trace.strings.intern("=HYPERLINK(\"x\")"));
    const std::string file = folder / "s.tscope";
    ASSERT_TRUE(profiler::write_trace(trace, file).has_value());
    const std::string out = folder / "x.csv";
    EXPECT_EQ(run({"export", file, "--to", "csv", "--table", "ops", "-o", out}).exit_code, 0);
    EXPECT_THAT(read_file(out), HasSubstr("\n\"'=HYPERLINK(\"\"x\"\")\","));
    EXPECT_EQ(run({"export", file, "--to", "csv", "-o", out}).exit_code, 0);
    EXPECT_THAT(read_file(out), HasSubstr("\n0,-1,0,-1,"));  // numbers stay as they are
}

TEST(ExportCommand, SaysThatATableIsEmpty) {
    const TemporaryFolder folder;
    const std::string sample = write_sample(folder, "s.tscope");
    const std::string out = folder / "x.csv";
    const Ran ran = run({"export", sample, "--to", "csv", "--table", "sweep", "-o", out});
    EXPECT_EQ(ran.exit_code, 0);
    EXPECT_THAT(ran.err, HasSubstr("s.tscope has no batches of a sweep: "));
    EXPECT_THAT(ran.err, HasSubstr("x.csv holds only a header.\n"));
    EXPECT_EQ(run({"export", sample, "--to", "csv", "--table", "steps", "-o", out}).err, "");
}

TEST(ExportCommand, DrawsMemoryOverTimeInEachFormat) {
    const TemporaryFolder folder;
    const std::string a = write_sample(folder, "a.tscope");
    const std::string b = write_sample(folder, "b.tscope", {.recipe = "tempo"});
    const std::vector<std::pair<std::string, std::string>> magic{
        {"svg", "<?xml"}, {"png", "\x89PNG"}, {"pdf", "%PDF-"}};
    for (const auto& [format, start] : magic) {
        for (const auto& files : std::vector<std::vector<std::string>>{{a}, {a, b}}) {
            std::vector<std::string> arguments{"export"};
            arguments.insert(arguments.end(), files.begin(), files.end());
            const std::string out = folder / ("chart." + format);
            arguments.insert(arguments.end(), {"--to", format, "-o", out});
            const Ran ran = run(arguments);
            EXPECT_EQ(ran.exit_code, 0) << ran.err;
            EXPECT_THAT(read_file(out), StartsWith(start));
        }
    }
}

/// One file that needs nothing else: a browser may neither load nor send anything.
TEST(ExportCommand, WritesAPageWithAPictureATableAndValuesToPointAt) {
    const TemporaryFolder folder;
    const std::string a = write_sample(folder, "a.tscope");
    const std::string b = write_sample(folder, "b.tscope", {.recipe = "tempo"});
    const std::string out = folder / "chart.html";
    ASSERT_EQ(run({"export", a, b, "--to", "html", "-o", out}).exit_code, 0);
    const std::string page = read_file(out);
    EXPECT_THAT(page, StartsWith("<!doctype html>"));
    EXPECT_THAT(page, HasSubstr("<svg "));
    EXPECT_THAT(page, HasSubstr("default-src 'none'"));
    EXPECT_THAT(page, HasSubstr("script-src 'sha256-"));
    for (const char* outside : {"src=", "href=\"http", "@import", "url(http"}) {
        EXPECT_EQ(page.find(outside), std::string::npos) << outside;
    }
    EXPECT_THAT(page, HasSubstr("tempo needs "));
    EXPECT_THAT(page, HasSubstr("less memory at its peak than original."));
    const std::string start = "<script type=\"application/json\" id=\"plots\">";
    const std::size_t data = page.find(start) + start.size();
    const auto plots =
        nlohmann::json::parse(page.substr(data, page.find("</script>", data) - data));
    ASSERT_EQ(plots.size(), 2u);
    int64_t highest = 0;
    for (const auto& bytes : plots[0]["rows"][0]["bytes"]) {
        highest = std::max(highest, bytes.get<int64_t>());
    }
    EXPECT_EQ(highest, profiler::find_peak(make_sample()).allocated_bytes);
    EXPECT_EQ(plots[0]["edges"].size(), plots[0]["rows"][0]["bytes"].size() + 1);
    const std::size_t table = page.find("<table>");
    ASSERT_NE(table, std::string::npos);
    EXPECT_THAT(page.substr(table), HasSubstr(">total</td>"));
}

TEST(ExportCommand, RefusesATableForAFormatThatIsNotCsv) {
    const TemporaryFolder folder;
    const std::string sample = write_sample(folder, "a.tscope");
    const std::string chart = folder / "a.svg";
    expect_one_sentence(run({"export", sample, "--to", "svg", "--table", "ops", "-o", chart}), 2,
                        "--table belongs to --to csv");
    EXPECT_FALSE(std::filesystem::exists(chart));
}

TEST(ExportCommand, RefusesAFileNameWithTheExtensionOfAnotherFormat) {
    const TemporaryFolder folder;
    const std::string sample = write_sample(folder, "a.tscope");
    const Ran ran = run({"export", sample, "--to", "svg", "-o", folder / "a.png"});
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_THAT(ran.err, HasSubstr("ends in .png: make them agree"));
    EXPECT_FALSE(std::filesystem::exists(folder / "a.png"));
}

TEST(ExportCommand, PacksOnlyWhatIsReadPacked) {
    const TemporaryFolder folder;
    const std::string sample = write_sample(folder, "a.tscope");
    for (const auto& [format, name] :
         {std::pair("csv", "a.csv.gz"), std::pair("snapshot", "a.pickle.gz")}) {
        expect_one_sentence(run({"export", sample, "--to", format, "-o", folder / name}), 2,
                            "only --to chrome and --to hta write packed files");
        EXPECT_FALSE(std::filesystem::exists(folder / name));
    }
}

/// What is written into a pipe is read as the export, so nothing follows it.
TEST(ExportCommand, SaysNothingBesideAnExportToNoFile) {
    const TemporaryFolder folder;
    const std::string sample = write_sample(folder, "a.tscope");
    const Ran ran = run({"export", sample, "--to", "csv", "-o", "/dev/null"});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_EQ(ran.out, "");
}

TEST(ExportCommand, TakesOneTraceForATable) {
    const TemporaryFolder folder;
    const std::string a = write_sample(folder, "a.tscope");
    const Ran ran = run({"export", a, a, "--to", "csv", "-o", folder / "x.csv"});
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_THAT(ran.err, HasSubstr("one trace"));
    EXPECT_FALSE(std::filesystem::exists(folder / "x.csv"));
}

TEST(ExportCommand, WritesFilesOfOtherProfilersThatOpenAgain) {
    const TemporaryFolder folder;
    const std::string sample = write_sample(folder, "s.tscope");
    const int64_t peak = profiler::find_peak(make_sample()).allocated_bytes;
    const std::vector<std::pair<std::string, std::string>> formats{
        {"snapshot", "a.pickle"}, {"chrome", "a.pt.trace.json.gz"}, {"chrome", "a.pt.trace.json"}};
    for (const auto& [format, name] : formats) {
        const std::string out = folder / name;
        for (int i = 0; i < 2; ++i) {  // an export replaces an export
            const Ran ran = run({"export", sample, "--to", format, "-o", out});
            EXPECT_EQ(ran.exit_code, 0) << ran.err;
        }
        const Ran info = run({"info", out, "--json"});
        EXPECT_EQ(info.exit_code, 0) << info.err;
        EXPECT_THAT(info.out, HasSubstr(fmt::format("\"peak_allocated_bytes\": {}", peak))) << name;
    }
    expect_one_sentence(
        run({"export", folder / "a.pickle", "--to", "snapshot", "-o", folder / "a.pickle"}), 2,
        "which the export would replace");
    expect_one_sentence(run({"export", sample, "--to", "hta", "-o", folder / "b.tscope"}), 2,
                        "b.raw.json.gz");
    expect_one_sentence(run({"export", sample, sample, "--to", "hta", "-o", folder / "x.json"}), 2,
                        "--to hta takes one trace");
}

TEST(ExportCommand, ReplacesOnlyFilesOfItsOwnKind) {
    const TemporaryFolder folder;
    const std::string sample = write_sample(folder, "s.tscope");
    const std::string program = folder / "train.py", hidden = folder / "trace.svg";
    std::ofstream(program) << "import torch";
    std::filesystem::copy_file(sample, hidden);
    for (const char* format : {"csv", "svg", "chrome", "snapshot"}) {
        expect_one_sentence(run({"export", sample, "--to", format, "-o", program}), 2,
                            "is there already and does not end as");
    }
    expect_one_sentence(run({"view", sample, "-o", program}), 2, "is there already and is no page");
    const std::string link = folder / "chart.svg";
    std::filesystem::create_symlink(program, link);
    expect_one_sentence(run({"export", sample, "--to", "svg", "-o", link}), 2,
                        "train.py, to which -o " + link + " leads, is there already");
    const std::string named_json = folder / "trace.json";
    std::filesystem::copy_file(sample, named_json);
    expect_one_sentence(run({"export", sample, "--to", "chrome", "-o", named_json}), 2,
                        "names a trace");
    EXPECT_EQ(read_file(program), "import torch");
    expect_one_sentence(run({"export", sample, "--to", "svg", "-o", hidden}), 2, "trace_2.svg");
    EXPECT_EQ(run({"info", hidden}).exit_code, 0);
}

TEST(ExportCommand, ChartsNeverReplaceATrace) {
    const TemporaryFolder folder;
    const std::string sample = write_sample(folder, "s.tscope");
    const std::string chart = folder / "comparison.svg";
    std::filesystem::copy_file(sample, chart);
    expect_one_sentence(run({"compare", chart, sample, "--charts", folder.path()}), 1,
                        "it is a trace; choose another name");
    EXPECT_EQ(run({"info", chart}).exit_code, 0);
}

TEST(ImportCommand, WritesATraceFromAnyFormatAndJoinsTwo) {
    const TemporaryFolder folder;
    const std::string sample = write_sample(folder, "s.tscope");
    const std::string snapshot = folder / "a.pickle", profile = folder / "a.pt.trace.json";
    ASSERT_EQ(run({"export", sample, "--to", "snapshot", "-o", snapshot}).exit_code, 0);
    ASSERT_EQ(run({"export", sample, "--to", "chrome", "-o", profile}).exit_code, 0);
    const std::string one = folder / "one.tscope", both = folder / "both.tscope";
    EXPECT_EQ(run({"import", snapshot, "-o", one}).exit_code, 0);
    const Ran joined = run({"import", profile, snapshot, "-o", both});
    EXPECT_EQ(joined.exit_code, 0) << joined.err;
    EXPECT_THAT(joined.out, HasSubstr("blocks: These blocks of the memory snapshot have an op"));
    const int64_t peak = profiler::find_peak(make_sample()).allocated_bytes;
    for (const std::string& file : {one, both}) {
        const Ran info = run({"info", file, "--json"});
        EXPECT_THAT(info.out, HasSubstr(fmt::format("\"peak_allocated_bytes\": {}", peak)));
    }
    expect_one_sentence(run({"import", snapshot, "-o", one}), 2, "exists already");
    expect_one_sentence(run({"import", snapshot, snapshot, "-o", one, "--overwrite"}), 1,
                        "is not a trace of the PyTorch profiler with ops");
    expect_one_sentence(run({"import", profile, profile, "-o", folder / "ranks.tscope"}), 1,
                        "are both of rank 0");
    std::string text = read_file(profile);
    text.replace(text.find("\"rank\": 0"), 9, "\"rank\": 1");
    const std::string second = folder / "rank1.json", ranks = folder / "ranks.tscope";
    std::ofstream(second) << text;
    const Ran of_ranks = run({"import", second, profile, "-o", ranks});
    EXPECT_EQ(of_ranks.exit_code, 0) << of_ranks.err;
    EXPECT_THAT(of_ranks.out, HasSubstr("2 ranks: The trace holds this number of ranks."));
    EXPECT_THAT(run({"info", ranks, "--json"}).out, HasSubstr("\"world_size\": 2"));
    const std::string all = folder / "all";
    std::filesystem::create_directory(all);
    for (const std::string& rank : {second, profile}) {
        std::filesystem::copy_file(
            rank, all / std::filesystem::path(rank).filename().replace_extension(".pt.trace.json"));
    }
    const Ran of_folder = run({"import", all, "-o", folder / "all.tscope"});
    EXPECT_EQ(of_folder.exit_code, 0) << of_folder.err;
    EXPECT_THAT(of_folder.out, HasSubstr("2 ranks: The trace holds this number of ranks."));
    expect_one_sentence(run({"import", snapshot, "-o", folder / "x.json"}), 2,
                        "does not end in .tscope");
    expect_one_sentence(run({"import", one, "-o", one}), 2, "is the file to read");
}

}  // namespace
