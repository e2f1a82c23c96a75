#include "profiler/analysis/step/peak.h"
#include "profiler/trace/file/trace_file.h"
#include "tests/app/program.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace {

using namespace tests;
using testing::HasSubstr;
using testing::StartsWith;

using ExportCommand = CommandTest;
using ImportCommand = CommandTest;

TEST_F(ExportCommand, WritesEachTableAsCsv) {
    const std::string sample =
        write_sample(folder_, "s.tscope", {.sweep = {{4, {2'000'000}}, {5, {}}}});
    const auto csv = [&](const std::string& table) {
        run_well({"export", sample, "--to", "csv", "--table", table, "-o", folder_ / "x.csv"});
        return read_file(folder_ / "x.csv");
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

TEST_F(ExportCommand, GuardsNamesThatSpreadsheetsReadAsFormulas) {
    profiler::Trace trace = make_sample();
    trace.ops.set<&profiler::Op::name>(profiler::Id<profiler::Op>(0),
                                       trace.strings.intern("=HYPERLINK(\"x\")"));
    const std::string file = folder_ / "s.tscope";
    ASSERT_TRUE(profiler::write_trace(trace, file).has_value());
    const std::string out = folder_ / "x.csv";
    run_well({"export", file, "--to", "csv", "--table", "ops", "-o", out});
    EXPECT_THAT(read_file(out), HasSubstr("\n\"'=HYPERLINK(\"\"x\"\")\","));
    run_well({"export", file, "--to", "csv", "-o", out});
    EXPECT_THAT(read_file(out), HasSubstr("\n0,-1,0,-1,"));  // numbers stay as they are
}

TEST_F(ExportCommand, SaysThatATableIsEmpty) {
    const std::string sample = write_sample(folder_, "s.tscope");
    const std::string out = folder_ / "x.csv";
    const Ran ran = run_well({"export", sample, "--to", "csv", "--table", "sweep", "-o", out});
    EXPECT_THAT(ran.err, HasSubstr("s.tscope has no batches of a sweep: "));
    EXPECT_THAT(ran.err, HasSubstr("x.csv holds only a header.\n"));
    EXPECT_EQ(run({"export", sample, "--to", "csv", "--table", "steps", "-o", out}).err, "");
}

TEST_F(ExportCommand, DrawsMemoryOverTimeInEachFormat) {
    const std::string a = write_sample(folder_, "a.tscope");
    const std::string b = write_sample(folder_, "b.tscope", {.recipe = "tempo"});
    const std::vector<std::pair<std::string, std::string>> magic{
        {"svg", "<?xml"}, {"png", "\x89PNG"}, {"pdf", "%PDF-"}};
    for (const auto& [format, start] : magic) {
        for (const auto& files : std::vector<std::vector<std::string>>{{a}, {a, b}}) {
            const std::string out = folder_ / ("chart." + format);
            run_well(joined({"export", "--to", format, "-o", out}, files));
            EXPECT_THAT(read_file(out), StartsWith(start));
        }
    }
}

/// One file that needs nothing else: a browser may neither load nor send anything.
TEST_F(ExportCommand, WritesAPageWithAPictureATableAndValuesToPointAt) {
    const std::string a = write_sample(folder_, "a.tscope");
    const std::string b = write_sample(folder_, "b.tscope", {.recipe = "tempo"});
    const std::string out = folder_ / "chart.html";
    run_well({"export", a, b, "--to", "html", "-o", out});
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

TEST_F(ExportCommand, RefusesWhatDoesNotGoTogether) {
    const std::string a = write_sample(folder_, "a.tscope");
    const auto refuse = [&](const std::string& arguments, const std::string& name,
                            const std::string& part) {
        const std::string out = folder_ / name;
        expect_one_sentence(run(words("export " + a + " " + arguments + " -o " + out)), 2, part);
        EXPECT_FALSE(std::filesystem::exists(out)) << name;
    };
    refuse("--to svg --table ops", "a.svg", "--table belongs to --to csv");
    refuse("--to svg", "a.png", "ends in .png: make them agree");
    refuse("--to csv", "a.csv.gz", "only --to chrome and --to hta write packed files");
    refuse("--to snapshot", "a.pickle.gz", "only --to chrome and --to hta write packed files");
    refuse(a + " --to csv", "x.csv", "one trace");
}

/// What is written into a pipe is read as the export, so nothing follows it.
TEST_F(ExportCommand, SaysNothingBesideAnExportToNoFile) {
    const std::string sample = write_sample(folder_, "a.tscope");
    const Ran ran = run_well({"export", sample, "--to", "csv", "-o", "/dev/null"});
    EXPECT_EQ(ran.out, "");
}

TEST_F(ExportCommand, WritesFilesOfOtherProfilersThatOpenAgain) {
    const std::string sample = write_sample(folder_, "s.tscope");
    const int64_t peak = profiler::find_peak(make_sample()).allocated_bytes;
    const std::vector<std::pair<std::string, std::string>> formats{
        {"snapshot", "a.pickle"}, {"chrome", "a.pt.trace.json.gz"}, {"chrome", "a.pt.trace.json"}};
    for (const auto& [format, name] : formats) {
        const std::string out = folder_ / name;
        for (int i = 0; i < 2; ++i) {  // an export replaces an export
            run_well({"export", sample, "--to", format, "-o", out});
        }
        const Ran info = run_well({"info", out, "--json"});
        EXPECT_THAT(info.out, HasSubstr(fmt::format("\"peak_allocated_bytes\": {}", peak))) << name;
    }
    expect_one_sentence(
        run({"export", folder_ / "a.pickle", "--to", "snapshot", "-o", folder_ / "a.pickle"}), 2,
        "which the export would replace");
    expect_one_sentence(run({"export", sample, "--to", "hta", "-o", folder_ / "b.tscope"}), 2,
                        "b.raw.json.gz");
    expect_one_sentence(run({"export", sample, sample, "--to", "hta", "-o", folder_ / "x.json"}), 2,
                        "--to hta takes one trace");
}

TEST_F(ExportCommand, ReplacesOnlyFilesOfItsOwnKind) {
    const std::string sample = write_sample(folder_, "s.tscope");
    const std::string program = folder_ / "train.py", hidden = folder_ / "trace.svg";
    std::ofstream(program) << "import torch";
    std::filesystem::copy_file(sample, hidden);
    for (const char* format : {"csv", "svg", "chrome", "snapshot"}) {
        expect_one_sentence(run({"export", sample, "--to", format, "-o", program}), 2,
                            "is there already and does not end as");
    }
    expect_one_sentence(run({"view", sample, "-o", program}), 2,
                        "is there already and is no table, chart or page");
    const std::string link = folder_ / "chart.svg";
    std::filesystem::create_symlink(program, link);
    expect_one_sentence(run({"export", sample, "--to", "svg", "-o", link}), 2,
                        "train.py, to which " + link + " leads, is there already");
    const std::string named_json = folder_ / "trace.json";
    std::filesystem::copy_file(sample, named_json);
    expect_one_sentence(run({"export", sample, "--to", "chrome", "-o", named_json}), 2,
                        "names a trace");
    EXPECT_EQ(read_file(program), "import torch");
    expect_one_sentence(run({"export", sample, "--to", "svg", "-o", hidden}), 2, "trace_2.svg");
    run_well({"info", hidden});
}

TEST_F(ExportCommand, ChartsNeverReplaceATrace) {
    const std::string sample = write_sample(folder_, "s.tscope");
    const std::string chart = folder_ / "comparison.svg";
    std::filesystem::copy_file(sample, chart);
    expect_one_sentence(run({"compare", chart, sample, "--charts", folder_.path()}), 1,
                        "it is a trace; choose another name");
    run_well({"info", chart});
}

TEST_F(ImportCommand, WritesATraceFromAnyFormatAndJoinsTwo) {
    const std::string sample = write_sample(folder_, "s.tscope");
    const std::string snapshot = folder_ / "a.pickle", profile = folder_ / "a.pt.trace.json";
    run_well({"export", sample, "--to", "snapshot", "-o", snapshot});
    run_well({"export", sample, "--to", "chrome", "-o", profile});
    const std::string one = folder_ / "one.tscope", both = folder_ / "both.tscope";
    run_well({"import", snapshot, "-o", one});
    const Ran joined = run_well({"import", profile, snapshot, "-o", both});
    EXPECT_THAT(joined.out, HasSubstr("blocks: These blocks of the memory snapshot have an op"));
    const std::string next = "\nNext: temposcope info " + both + " --peak\n";
    EXPECT_THAT(joined.out, testing::EndsWith(next));
    const int64_t peak = profiler::find_peak(make_sample()).allocated_bytes;
    for (const std::string& file : {one, both}) {
        const Ran info = run({"info", file, "--json"});
        EXPECT_THAT(info.out, HasSubstr(fmt::format("\"peak_allocated_bytes\": {}", peak)));
    }
    expect_one_sentence(run({"import", snapshot, "-o", one}), 2, "exists already");
    expect_one_sentence(run({"import", snapshot, snapshot, "-o", one, "--overwrite"}), 1,
                        "is not a trace of the PyTorch profiler with ops");
    expect_one_sentence(run({"import", profile, profile, "-o", folder_ / "ranks.tscope"}), 1,
                        "are both of rank 0");
    std::string text = read_file(profile);
    text.replace(text.find("\"rank\": 0"), 9, "\"rank\": 1");
    const std::string second = folder_ / "rank1.json", ranks = folder_ / "ranks.tscope";
    std::ofstream(second) << text;
    const Ran of_ranks = run_well({"import", second, profile, "-o", ranks});
    EXPECT_THAT(of_ranks.out, HasSubstr("2 ranks: The trace holds this number of ranks."));
    EXPECT_THAT(run({"info", ranks, "--json"}).out, HasSubstr("\"world_size\": 2"));
    const std::string all = folder_ / "all";
    std::filesystem::create_directory(all);
    for (const std::string& rank : {second, profile}) {
        std::filesystem::copy_file(
            rank, all / std::filesystem::path(rank).filename().replace_extension(".pt.trace.json"));
    }
    const Ran of_folder = run_well({"import", all, "-o", folder_ / "all.tscope"});
    EXPECT_THAT(of_folder.out, HasSubstr("2 ranks: The trace holds this number of ranks."));
    expect_one_sentence(run({"import", snapshot, "-o", folder_ / "x.json"}), 2,
                        "does not end in .tscope");
    expect_one_sentence(run({"import", one, "-o", one}), 2, "is the file to read");
}

}  // namespace
