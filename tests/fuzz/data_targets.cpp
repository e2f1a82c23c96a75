// Data of users and of other programs: the planner's files, a worker's frames, themes, and the
// small languages of the command line.
#include "models/config/layer_recipes.h"
#include "profiler/allocator/settings.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/protocol/frame.h"
#include "profiler/protocol/messages.h"
#include "profiler/view/theme.h"
#include "tests/fuzz/fuzz_target.h"

#include <array>
#include <fstream>
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

const std::array kTargets{
    FuzzTarget{"planner_data",
               [] {
                   return std::vector{asset("gpus.json"), asset("setups.json"),
                                      asset("calibration.json")};
               },
               read_planner_data},
    FuzzTarget{"frames", frame_seeds, read_frames},
    FuzzTarget{"theme", [] { return std::vector{asset("themes/dark.json")}; },
               [](const std::string& bytes) { (void)parse_theme(bytes); }},
    FuzzTarget{"recipe",
               [] {
                   return std::vector<std::string>{
                       "tempo@0-11", "original+attention=recompute_dropout@0-11,tempo",
                       "gelu=in_place,layernorm=in_place,masks=bit,optimizer=sgd"};
               },
               read_recipe},
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
