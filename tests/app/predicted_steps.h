#pragma once

#include "app/prediction/trace_workers.h"
#include "models/config/workload.h"

#include <gtest/gtest.h>

#include <string>

/// Steps of the built worker on virtual GPUs.
namespace tests {

class PredictedSteps : public testing::Test {
protected:
    void SetUp() override;
    void TearDown() override;

    /// One worker for each card and detail; it stays for the other tests of the process.
    static app::TraceWorkers& workers_on(const std::string& gpu,
                                         app::TraceDetail detail = app::TraceDetail::kForCapture);
    /// The step after a warm-up; empty, with a failure of the test, if it cannot be predicted.
    static profiler::Trace predict(const models::Workload& workload,
                                   const std::string& gpu = "a100-40gb");
};

}  // namespace tests
