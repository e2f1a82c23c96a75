#include "tests/app/json_keys.h"
#include "profiler/trace/file/trace_file.h"
#include "tests/app/plan_traces.h"
#include "tests/app/program.h"
#include "tests/profiler/allocator/recorder.h"
#include "tests/profiler/formats/snapshot_bytes.h"
#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

/// Every command prints exactly the JSON keys that docs/commands.md lists, because users rely on
/// them.
namespace {

using namespace tests;

Keys with_trace(const std::string& name) {
    Keys keys = documented(name);
    keys.merge(documented("trace"));
    return keys;
}

class JsonKeys : public CommandTest {
protected:
    nlohmann::json info(const std::vector<std::string>& more) {
        return run(joined({"info", sample_, "--json"}, more)).json();
    }

    std::string sample_ = write_sample(folder_, "s.tscope",
                                       {.sweep = {{1, {1'000'000}}, {2, {}}}, .complete = false});
};

TEST_F(JsonKeys, OfInfo) {
    const auto overview = info({});
    EXPECT_EQ(keys_of(overview), with_trace("info"));
    EXPECT_EQ(keys_of(overview["rows"][0]), documented("info row"));
    EXPECT_EQ(keys_of(overview["allocator"]), documented("allocator"));
    EXPECT_EQ(keys_of(overview["devices"][0]), documented("device memory"));
    const std::string chrome = folder_ / "s.pt.trace.json";
    run({"export", sample_, "--to", "chrome", "-o", chrome});
    const auto annotated = run({"info", chrome, "--json"}).json();
    EXPECT_EQ(keys_of(annotated["annotations"][0]), documented("annotation"));
    EXPECT_EQ(keys_of(overview["closed_form"]), documented("closed form"));
}

TEST_F(JsonKeys, OfRanks) {
    const CommandFolder ranks;
    const std::string damaged = ranks / "rank-0001.tscope";
    write_sample(ranks, "rank-0000.tscope");
    std::filesystem::copy_file(ranks / "rank-0000.tscope", damaged);
    std::filesystem::resize_file(damaged, 5000);
    const Ran ran = run_well({"info", ranks.path().string(), "--json"});
    EXPECT_THAT(ran.err, testing::HasSubstr("Left out: " + damaged));
    const auto document = ran.json();
    EXPECT_EQ(keys_of(document), documented("info ranks"));
    EXPECT_EQ(keys_of(document["rows"][0]), documented("info ranks row"));
    EXPECT_EQ(document["rows"].size(), 1U);
    EXPECT_EQ(document["left_out"], nlohmann::json::array({damaged}));
}

TEST_F(JsonKeys, OfTheReports) {
    const auto ledger = info({"--ledger"});
    EXPECT_EQ(keys_of(ledger), with_trace("ledger"));
    EXPECT_EQ(keys_of(ledger["rows"][0]), documented("ledger row"));
    const auto sums = info({"--ledger", "--by", "op"});
    EXPECT_EQ(keys_of(sums), with_trace("saved by"));
    EXPECT_EQ(keys_of(sums["rows"][0]), documented("peak row"));
    const auto peak = info({"--peak"});
    EXPECT_EQ(keys_of(peak), with_trace("peak"));
    EXPECT_EQ(keys_of(peak["rows"][0]), documented("peak row"));
    EXPECT_EQ(keys_of(peak["rows"][0]["by_class"]), documented("classes"));
    EXPECT_EQ(keys_of(info({"--growth"})), with_trace("growth"));
    EXPECT_EQ(keys_of(info({"--ops"})), with_trace("ops"));
    const auto diagnostics = info({"--health"});
    EXPECT_EQ(keys_of(diagnostics), with_trace("health"));
    EXPECT_EQ(keys_of(diagnostics["rows"][0]), documented("health row"));
}

TEST_F(JsonKeys, OfExplain) {
    tests::TraceBuilder b;
    b.begin_step(PhaseKind::kBackward);
    b.allocate({.bytes = 1 << 20});
    b.end_step();
    Trace trace = b.finish();
    trace.failures.append({.event = b.next_event(), .requested_bytes = 1, .step = Id<Step>(0)});
    const std::string file = folder_ / "failed.tscope";
    ASSERT_TRUE(write_trace(trace, file));
    const auto json = run({"explain", file, "--json"}).json();
    EXPECT_EQ(keys_of(json), documented("explain"));
    EXPECT_EQ(keys_of(json["verdict"]), documented("explain verdict"));
    Keys failure = documented("explain failure");
    failure.merge(documented("failure"));
    EXPECT_EQ(keys_of(json["failure"]), failure);
    EXPECT_EQ(keys_of(json["peak"]), documented("explain peak"));
    EXPECT_EQ(keys_of(json["target"]), documented("explain target"));
}

TEST_F(JsonKeys, OfCompare) {
    const auto comparison = run({"compare", sample_, "--json"}).json();
    EXPECT_EQ(keys_of(comparison), documented("compare"));
    EXPECT_EQ(keys_of(comparison["rows"][0]), documented("compare row"));
    EXPECT_EQ(keys_of(comparison["rows"][0]["peak_by_class"]), documented("classes"));
    EXPECT_EQ(keys_of(comparison["rows"][0]["curve"][0]), documented("curve point"));
    const auto by = run({"compare", sample_, "--by", "op", "--json"}).json();
    EXPECT_EQ(keys_of(by["rows"][0]["groups"][0]), documented("info row"));
}

TEST_F(JsonKeys, OfPredictionErrors) {
    const std::string measured = write_sample(folder_, "measured.tscope");
    const std::string file =
        write_sample(folder_, "predicted.tscope", {.scale = 2, .is_predicted = true});
    const auto rows = run({"compare", measured, file, "--json"}).json()["reconciliations"];
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(keys_of(rows[0]), documented("reconciliation"));
    EXPECT_EQ(keys_of(rows[0]["gaps"]), documented("gaps"));
    EXPECT_EQ(keys_of(rows[0]["tensors"][0]), documented("unmatched tensor"));
    EXPECT_EQ(rows[0]["measured_file"], measured);
    const Ran table = run({"compare", measured, file});
    EXPECT_NE(table.out.find("held by one only"), std::string::npos) << table.out;
}

TEST_F(JsonKeys, OfRun) {
    const auto document = run({"run", "-o", folder_ / "run.tscope", "--json", "--", "true"}).json();
    EXPECT_EQ(keys_of(document), documented("run"));
    EXPECT_TRUE(document["file"].is_null());
}

TEST_F(JsonKeys, OfReplay) {
    const auto json =
        run({"replay", sample_, "--alloc-conf", "", "--memory-limit", "1MiB", "--json"}).json();
    EXPECT_EQ(keys_of(json), documented("replay"));
    for (const auto& row : json["rows"]) EXPECT_EQ(keys_of(row), documented("replay row"));
    EXPECT_EQ(keys_of(json["rows"].back()["out_of_memory"]), documented("out of memory"));
    const std::string snapshot = folder_ / "oom.pickle";
    std::ofstream(snapshot, std::ios::binary) << snapshot_bytes(out_of_memory_recording());
    const auto failed = run({"replay", snapshot, "--json"}).json();
    EXPECT_EQ(keys_of(failed["rows"][0]["refused_request"]), documented("refused request"));
}

TEST_F(JsonKeys, OfPlan) {
    write_plan_traces(folder_ / "traces", "original");
    const auto arguments = plan_arguments(folder_ / "traces");
    const auto json = run(joined(arguments, {"--gpu", "t4", "--gpus", "2", "--json"})).json();
    EXPECT_EQ(keys_of(json), documented("plan"));
    const auto& row = json["rows"][0];
    EXPECT_EQ(keys_of(row), documented("plan row"));
    EXPECT_EQ(keys_of(row["peak_by_class"]), documented("classes"));
    EXPECT_EQ(keys_of(row["terms"]), documented("plan terms"));
    EXPECT_EQ(keys_of(row["time_by_class"]), documented("plan times"));
    EXPECT_EQ(keys_of(row["curve"][0]), documented("plan curve point"));
}

TEST_F(JsonKeys, OfExportAndView) {
    const auto csv = run({"export", sample_, "--to", "csv", "-o", folder_ / "x.csv", "--json"});
    EXPECT_EQ(keys_of(csv.json()), documented("export"));
    const auto page = run({"view", sample_, "-o", folder_ / "x.html", "--json"});
    EXPECT_EQ(keys_of(page.json()), documented("view"));
}

TEST_F(JsonKeys, OfDoctor) {
    const auto json = run({"doctor", "--json"}).json();
    EXPECT_EQ(keys_of(json), documented("doctor"));
    ASSERT_FALSE(json["rows"].empty());
    for (const auto& row : json["rows"]) EXPECT_EQ(keys_of(row), documented("doctor row"));
}

TEST_F(JsonKeys, AreSnakeCase) {
    for (const auto& [name, keys] : documented_keys()) {
        for (const auto& key : keys) {
            EXPECT_TRUE(std::regex_match(key, std::regex("[a-z][a-z0-9]*(_[a-z0-9]+)*"))) << key;
        }
    }
}

}  // namespace
