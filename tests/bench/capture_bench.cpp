// Measures what recording costs: the step time of a BERT-base layer with and without recording.
//
// Traced and untraced steps alternate, so drift of the machine's speed affects both alike. Untraced
// steps run on torch's own allocator and without callbacks. Prints the medians, and the median of
// the ratios of each pair. The goal is a ratio of at most 1.05.

#include "models/training/training.h"
#include "profiler/capture/cpu_capture.h"
#include "profiler/capture/recorder.h"
#include "profiler/capture/tracking_allocator.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

namespace {

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

double step_ms(models::Training& training, models::StepListener* listener) {
    const auto start = std::chrono::steady_clock::now();
    training.step(listener);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
        .count();
}

double traced_step_ms(models::Training& training) {
    profiler::Trace trace;
    profiler::Recorder recorder(trace);
    recorder.start();
    recorder.begin_step();
    const double elapsed = step_ms(training, &recorder);
    recorder.end_step(0);
    recorder.stop();
    return elapsed;
}

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 41;
    c10::Allocator* const stock = c10::GetAllocator(c10::kCPU);
    profiler::TrackingAllocator& tracking = profiler::TrackingAllocator::instance();
    models::Workload workload{
        .model = *models::find_model("bert-base"), .batch_size = 8, .seq_len = 128};
    workload.model.num_layers = 1;
    models::Training training(workload);
    for (int i = 0; i < 3; ++i) training.step();
    std::vector<double> untraced, traced, ratios;
    for (int i = 0; i < rounds; ++i) {
        c10::SetAllocator(c10::kCPU, stock, 255);
        untraced.push_back(step_ms(training, nullptr));
        c10::SetAllocator(c10::kCPU, &tracking, 255);
        traced.push_back(traced_step_ms(training));
        ratios.push_back(traced.back() / untraced.back());
    }
    fmt::print("BERT-base layer, B=8 S=128, fp32, {} rounds\n", rounds);
    fmt::print("untraced {:8.2f} ms   traced {:8.2f} ms   ratio {:.3f} (goal: at most 1.05)\n",
               median(untraced), median(traced), median(ratios));
}
