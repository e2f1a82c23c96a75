#include "profiler/planner/data/planner_data.h"

#include "tests/profiler/trace/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace {

using namespace profiler;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kIds[] = {"gtx1080ti",
                                "rtx2080ti",
                                "rtx3090",
                                "rtx3090ti",
                                "rtx4090",
                                "rtx5090",
                                "t4",
                                "v100-16gb",
                                "v100-32gb",
                                "a10",
                                "a40",
                                "a6000",
                                "l4",
                                "l40s",
                                "h100-pcie",
                                "a100-40gb",
                                "a100-80gb",
                                "h100-sxm",
                                "h200",
                                "b200",
                                "mi250x",
                                "mi300x",
                                "jetson-orin",
                                "v100-32gb-pcie",
                                "a100-40gb-pcie",
                                "a100-80gb-pcie",
                                "gh200"};

const Gpu& gpu_named(std::string_view id) { return **find_gpu(built_in_planner_data().gpus, id); }

/// A GPU that is right; `from` is replaced by `to`.
std::string gpu_file(const std::string& from = "", const std::string& to = "") {
    std::string text = R"({"sources": {"sheet": "data sheet"}, "gpus": [{
        "id": "mine", "name": "My GPU", "tier": "geforce", "compute_capability": "8.9",
        "memory_gib": {"value": 16, "source": "sheet"},
        "usable_memory_gib": {"value": 15.6, "source": "sheet"},
        "bandwidth_gb_per_s": {"value": 500, "source": "sheet"},
        "fp32_tflops": {"value": 40, "source": "sheet"},
        "sm_count": {"value": 66, "source": "sheet"},
        "l2_mib": {"value": 48, "source": "sheet"}}]})";
    if (!from.empty()) text.replace(text.find(from), from.size(), to);
    return text;
}

std::string error_of(const std::string& text) {
    const auto gpus = parse_gpus(text, "gpus.json");
    return gpus ? "no error" : gpus.error().message;
}

TEST(GpuCatalogue, HoldsTheCardsThatAreDocumented) {
    for (const char* id : kIds) EXPECT_TRUE(find_gpu(built_in_planner_data().gpus, id)) << id;
    EXPECT_EQ(built_in_planner_data().gpus.size(), std::size(kIds));
}

TEST(GpuCatalogue, EveryFigureHasASource) {
    for (const Gpu& gpu : built_in_planner_data().gpus) {
        for (const Figure* figure : {&gpu.memory_bytes, &gpu.usable_memory_bytes,
                                     &gpu.bandwidth_bytes_per_s, &gpu.sm_count, &gpu.l2_bytes}) {
            EXPECT_GT(figure->value, 0) << gpu.id;
            EXPECT_GT(figure->source.size(), 10U) << gpu.id;
        }
        for (const auto& peak : gpu.peak_flop_per_s) {
            if (!peak) continue;
            EXPECT_GT(peak->source.size(), 10U) << gpu.id;
        }
    }
}

TEST(GpuCatalogue, TheMemorysClockAndBusGiveTheBandwidth) {
    for (const Gpu& gpu : built_in_planner_data().gpus) {
        if (!gpu.compute_capability || !gpu.no_kernel_model.empty()) continue;
        ASSERT_TRUE(gpu.clock_khz && gpu.memory_clock_khz && gpu.memory_bus_bits) << gpu.id;
        const double bytes_per_s =
            2 * gpu.memory_clock_khz->value * 1e3 * gpu.memory_bus_bits->value / 8;
        // Data sheets round, and those of the H100 PCIe and the H200 leave a margin.
        EXPECT_NEAR(bytes_per_s / gpu.bandwidth_bytes_per_s.value, 1, 0.025) << gpu.id;
    }
}

TEST(GpuCatalogue, HasFiguresInBaseUnits) {
    EXPECT_EQ(gpu_named("v100-16gb").peak(MatmulType::kFp16)->value, 125e12);
    EXPECT_EQ(gpu_named("v100-16gb").bandwidth_bytes_per_s.value, 900e9);
    EXPECT_EQ(gpu_named("v100-32gb").usable_memory_bytes.value, 31.75 * 0x1p30);
    EXPECT_EQ(gpu_named("h100-sxm").compute_capability, (ComputeCapability{9, 0}));
    EXPECT_FALSE(gpu_named("v100-16gb").peak(MatmulType::kTf32));
    EXPECT_FALSE(gpu_named("mi300x").no_kernel_model.empty());
    EXPECT_FALSE(gpu_named("mi300x").compute_capability);
}

TEST(GpuCatalogue, ListsNearNames) {
    EXPECT_EQ(gpu_named("RTX4090").id, "rtx4090");
    const auto missing = find_gpu(built_in_planner_data().gpus, "rtx3080ti");
    ASSERT_FALSE(missing);
    EXPECT_THAT(missing.error().message, HasSubstr("rtx3090ti"));
}

TEST(GpuFile, TakesACardOfTheUsers) {
    const auto gpus = parse_gpus(gpu_file(), "gpus.json");
    ASSERT_TRUE(gpus) << gpus.error().message;
    EXPECT_EQ(gpus->front().id, "mine");
    EXPECT_EQ(gpus->front().memory_bytes.source, "data sheet");
    EXPECT_FALSE(gpus->front().clock_khz);
}

TEST(GpuFile, NamesThePlaceOfEveryMistake) {
    EXPECT_THAT(error_of(gpu_file(R"("sm_count")", R"("sms")")),
                HasSubstr("gpus.json, mine: the field 'sm_count' is missing."));
    EXPECT_THAT(error_of(gpu_file(R"("tier")", R"("colour": 1, "tier")")),
                HasSubstr("'colour' is not known"));
    EXPECT_THAT(error_of(gpu_file(R"("value": 16)", R"("value": "16")")),
                AllOf(HasSubstr("mine, memory_gib"), HasSubstr("'value' must be a number")));
    EXPECT_THAT(error_of(gpu_file(R"("value": 16, "source": "sheet")", R"("value": 16)")),
                HasSubstr("'source' is missing"));
    EXPECT_THAT(error_of(gpu_file(R"("source": "sheet")", R"("source": "web")")),
                HasSubstr("'web' is not in the file's 'sources'"));
    EXPECT_THAT(error_of(gpu_file("geforce", "cheap")), HasSubstr("one of geforce"));
    EXPECT_THAT(error_of(gpu_file("8.9", "new")), HasSubstr("such as \"8.6\""));
    EXPECT_THAT(error_of(gpu_file("15.6", "17")), HasSubstr("is larger than 'memory_gib'"));
    EXPECT_THAT(error_of(gpu_file("\"mine\"", "\"My Card\"")), HasSubstr("lower case"));
    EXPECT_THAT(error_of(gpu_file("\"value\": 500", "\"value\": 0")), HasSubstr("above 0"));
    EXPECT_THAT(error_of(gpu_file("\"value\": 500", "\"value\": 1e-9")), HasSubstr("from 0.01 to"));
    EXPECT_THAT(error_of(gpu_file("\"value\": 40", "\"value\": 1e-300")),
                HasSubstr("from 0.01 to"));
    EXPECT_THAT(error_of(gpu_file("\"value\": 66", "\"value\": 0.5")), HasSubstr("from 1 to"));
    EXPECT_THAT(error_of(gpu_file("\"value\": 48", "\"value\": 1e12")), HasSubstr("to 1000000"));
    EXPECT_THAT(error_of(gpu_file("\"fp32_tflops\"", "\"fp16_tflops\"")),
                HasSubstr("'fp32_tflops' is missing"));
    EXPECT_THAT(error_of("[1, 2"), HasSubstr("not a JSON object"));
    EXPECT_THAT(error_of("{}"), HasSubstr("'sources' is missing"));
    EXPECT_THAT(error_of(R"({"sources": {}})"), HasSubstr("'gpus' is missing"));
    EXPECT_THAT(error_of(R"({"sources": {}, "gpus": [7]})"), HasSubstr("an object"));
}

TEST(GpuFile, PlansTheMemoryOfACardOfWhichNothingElseIsKnown) {
    const auto gpus = parse_gpus(R"({"sources": {"box": "its box"}, "gpus": [
        {"id": "new", "name": "New", "memory_gib": {"value": 48, "source": "box"}}]})",
                                 "gpus.json");
    ASSERT_TRUE(gpus) << gpus.error().message;
    EXPECT_EQ(gpus->front().usable_memory_bytes.value, 48 * 0x1p30);
    EXPECT_EQ(gpus->front().no_kernel_model, "its rates are not known");
    EXPECT_FALSE(gpus->front().peak(MatmulType::kFp32));
}

TEST(GpuFile, RefusesACardTwice) {
    std::string text = gpu_file();
    const std::size_t begin = text.find("[{") + 1;
    const std::string gpu = text.substr(begin, text.rfind(']') - begin);
    text.insert(begin, gpu + ",");
    EXPECT_THAT(error_of(text), HasSubstr("there twice"));
}

TEST(PlannerData, AddsAndReplacesWhatTheUserGives) {
    const tests::TemporaryFolder folder;
    std::ofstream(folder.path() / "gpus.json") << gpu_file();
    std::ofstream(folder.path() / "calibration.json")
        << R"({"sources": {"me": "measured here"}, "efficiencies": [
               {"kernel": "softmax", "gpus": ["mine"], "efficiency": 0.8, "source": "me"}]})";
    const auto data = load_planner_data(folder.path());
    ASSERT_TRUE(data) << data.error().message;
    EXPECT_TRUE(find_gpu(data->gpus, "mine"));
    EXPECT_TRUE(find_gpu(data->gpus, "t4"));
    EXPECT_EQ(data->calibration.efficiencies.back().efficiency.source, "measured here");
    std::filesystem::remove(folder.path() / "calibration.json");  // nothing is "mine" any more
    std::ofstream(folder.path() / "gpus.json") << gpu_file("\"mine\"", "\"t4\"");
    const auto replaced = load_planner_data(folder.path()).value();
    EXPECT_EQ(replaced.gpus.size(), std::size(kIds));
    EXPECT_EQ((*find_gpu(replaced.gpus, "t4"))->name, "My GPU");
}

TEST(PlannerData, NamesTheUsersFileThatIsWrong) {
    const tests::TemporaryFolder folder;
    std::ofstream(folder.path() / "calibration.json") << R"({"sources": {}, "launches": 3})";
    const auto data = load_planner_data(folder.path());
    ASSERT_FALSE(data);
    EXPECT_THAT(data.error().message,
                AllOf(HasSubstr("calibration.json"), HasSubstr("'launches' is not known")));
}

TEST(PlannerData, RefusesWhatIsNoFile) {
    const tests::TemporaryFolder folder;
    const std::filesystem::path file = folder.path() / "gpus.json";
    const auto problem = [&] {
        const auto data = load_planner_data(folder.path());
        std::filesystem::remove(file);
        return data ? "no error" : data.error().message;
    };
    std::filesystem::create_directory(file);
    EXPECT_THAT(problem(), HasSubstr("gpus.json is not a regular file"));
    std::filesystem::create_symlink(folder.path() / "gone.json", file);
    EXPECT_THAT(problem(), HasSubstr("gpus.json is not a regular file"));
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
    EXPECT_THAT(problem(), HasSubstr("gpus.json is not a regular file"));
    EXPECT_EQ(problem(), "no error");
}

TEST(PlannerData, RefusesNamesThatNothingExplains) {
    const tests::TemporaryFolder folder;
    const auto problem = [&](const std::string& from, const std::string& to) {
        std::string text = R"({"sources": {"me": "measured here"}, "setups": [{
            "id": "mine", "name": "Mine", "torch": "2.11.0", "cuda": "13.0",
            "min_compute_capability": "7.5", "older_cards": "tempo-2022",
            "context": [{"mib": 500, "source": "me"}, {"gpus": ["t4"], "mib": 1, "source": "me"}],
            "kernel_set": "torch", "gradients": "none", "optimizer": "recipe",
            "clips_gradients": false, "gpus": 1, "ddp_buckets": "copy",
            "nccl_mib": {"value": 1, "source": "me"},
            "host_forward_ns": {"value": 1, "source": "me"},
            "host_backward_ns": {"value": 1, "source": "me"},
            "matmul_scale": {"value": 1, "source": "me"}}]})";
        text.replace(text.find(from), from.size(), to);
        std::ofstream(folder.path() / "setups.json") << text;
        const auto data = load_planner_data(folder.path());
        return data ? "no error" : data.error().message;
    };
    EXPECT_EQ(problem("Mine", "Mine"), "no error");
    EXPECT_THAT(
        problem("\"recipe\"", "\"adamv\""),
        AllOf(HasSubstr("setups.json, mine: 'adamv' is not an optimizer"), HasSubstr("adamw")));
    EXPECT_THAT(problem("\"torch\",", "\"torch-2\","), HasSubstr("not a kernel set"));
    EXPECT_THAT(problem("tempo-2022", "tempo-2021"), HasSubstr("did you mean tempo-2022"));
    EXPECT_THAT(problem("\"t4\"", "\"t5\""), HasSubstr("'t5' is not a known GPU"));
    std::filesystem::remove(folder.path() / "setups.json");
    std::ofstream(folder.path() / "calibration.json")
        << R"({"sources": {"me": "measured here"}, "bandwidth": [
               {"gpus": ["myne"], "gb_per_s": 800, "source": "me"}]})";
    EXPECT_THAT(load_planner_data(folder.path()).error().message,
                HasSubstr("calibration.json, bandwidth: 'myne' is not a known GPU"));
}

TEST(PlannerData, WithoutAFolderIsWhatTheProgramBrings) {
    EXPECT_EQ(load_planner_data({})->gpus.size(), std::size(kIds));
}

const SoftwareEnvironment& environment_named(std::string_view id) {
    return **find_environment(built_in_planner_data().environments, id);
}

TEST(Setups, HoldTodaysAndThePublishedOnes) {
    for (const char* id : {"torch-2.11", "torch-2.8", "torch-2.15", "tempo-2022", "nvidia-2022",
                           "mli-2023", "mli-2023-fused", "deepspeed-2020", "substation-2020"}) {
        ASSERT_TRUE(find_environment(built_in_planner_data().environments, id)) << id;
        EXPECT_GT(environment_named(id).host_forward_ns.value, 0);
    }
    const auto& tempo = environment_named("tempo-2022");
    EXPECT_NE(tempo.context_bytes("rtx2080ti").value, tempo.context_bytes("v100-16gb").value);
}

TEST(Setups, OfOtherVersionsOfTorchDifferInNothingElse) {
    SoftwareEnvironment newest = environment_named("torch-2.15");
    EXPECT_EQ(newest.torch, "2.15.0");
    EXPECT_EQ(newest.name, "PyTorch 2.15, CUDA 13.2, Python, eager");
    const SoftwareEnvironment& usual = environment_named("torch-2.11");
    EXPECT_EQ(newest.context_bytes("h200").value, usual.context_bytes("h200").value);
    EXPECT_EQ(newest.older_gpus, "tempo-2022");
    EXPECT_EQ(environment_named("torch-2.8").min_compute_capability,
              (models::ComputeCapability{7, 0}));
}

/// A step of an older torch than 2.8 is run with the usual one.
TEST(Setups, NameTheTorchThatMustRunTheirSteps) {
    const auto torch_of = [](const char* torch) {
        return SoftwareEnvironment{.torch = torch}.torch_to_run();
    };
    EXPECT_EQ(torch_of("2.15.0"), "2.15");
    EXPECT_EQ(torch_of("2.15"), "2.15");
    EXPECT_EQ(torch_of("2.8.0+cu128"), "2.8");
    for (const char* older : {"2.7.1", "1.13.0", "", "two", "2"}) {
        EXPECT_EQ(torch_of(older), "") << older;
    }
}

TEST(Setups, OlderCardsTakeTheSetupThatRanOnThem) {
    const auto id_for = [](const char* gpu) {
        const auto& data = built_in_planner_data();
        return environment_for(data.environments, environment_named("torch-2.11"), gpu_named(gpu))
            .value()
            ->id;
    };
    EXPECT_EQ(id_for("a100-80gb"), "torch-2.11");
    EXPECT_EQ(id_for("t4"), "torch-2.11");
    EXPECT_EQ(id_for("v100-16gb"), "tempo-2022");
}

TEST(GpuNames, AShortNameOfAGpuHasNoMakerAndNoBrand) {
    EXPECT_EQ(short_gpu_name("NVIDIA A100 80 GB SXM"), "A100 80 GB SXM");
    EXPECT_EQ(short_gpu_name("NVIDIA GeForce RTX 3090 Ti"), "RTX 3090 Ti");
    EXPECT_EQ(short_gpu_name("Tesla V100-SXM2-16GB"), "V100-SXM2-16GB");
    EXPECT_EQ(short_gpu_name("AMD Instinct MI300X"), "MI300X");
    EXPECT_EQ(short_gpu_name("B200"), "B200");
    EXPECT_EQ(short_gpu_name(""), "");
}

}  // namespace
