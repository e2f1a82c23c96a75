#pragma once

#include <string>
#include <vector>

/// Traces of small steps, which `temposcope plan --traces` reads.
namespace tests {

/// One recipe of a small BERT at the batches that a plan asks for.
void write_plan_traces(const std::string& folder, const std::string& recipe);

/// "plan --model bert-base ... --traces FOLDER" with the sizes of that model.
std::vector<std::string> plan_arguments(const std::string& folder);

}  // namespace tests
