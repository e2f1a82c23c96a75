// Data of users and of other programs: the planner's files, a worker's frames, themes.
#include "profiler/planner/data/planner_data.h"
#include "profiler/protocol/frame.h"
#include "profiler/protocol/messages.h"
#include "profiler/view/theme.h"
#include "tests/fuzz/fuzz_target.h"

#include <array>
#include <fstream>
#include <sstream>

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
};

}  // namespace

std::span<const FuzzTarget> data_targets() { return kTargets; }

}  // namespace tests
