#pragma once

#include "models/config/workload.h"
#include "profiler/analysis/step/ledger.h"

#include <cstdint>
#include <string>
#include <vector>

/// What one middle Transformer layer saves for backward, by formula: a table of rows whose sum is
/// the papers' closed form (docs/techniques.md: n = B*S*H, T = B*A*S^2, R = B*S, e = bytes per
/// element). A check on traces, never their source.
namespace profiler {

struct ClosedFormRow {
    std::string tensor;   // the ledger's name of the tensor: "attention_probs"
    std::string formula;  // "eT"
    int64_t size_bytes = 0;
};

struct ClosedForm {
    std::vector<ClosedFormRow> rows;
    std::string formula;  // "n(16e+2)+T(2e+1)+4Rs"
    int64_t total_bytes = 0;
};

/// How tensor parallelism splits a layer among GPUs: heads and the MLP's width, and with Megatron's
/// sequence parallelism (Korthikanti et al. 2022, section 4.2.2) all else by positions.
struct LayerSplit {
    int64_t num_gpus = 1;
    bool by_positions = false;
};

/// `on_cpu`: the CPU stores LayerNorm statistics of uniform 16-bit types in 2 bytes, other devices
/// in 4. `split`: the form is of one of its GPUs. What a checkpoint of whole layers keeps is whole.
/// Errors: the reason why no closed form is known. Requires a workload that `models::validate`
/// accepts, as `workload_of(trace)` is.
models::Result<ClosedForm> closed_form_of_layer(const models::Workload& workload, bool on_cpu,
                                                const LayerSplit& split = {});

struct ClosedFormCheck {
    int64_t layer = -1;  // the middle layer that was compared
    int64_t ledger_bytes = 0;
    ClosedForm form;  // of that layer's recipe

    bool equal() const { return ledger_bytes == form.total_bytes; }
};

/// Compares the ledger of a middle layer (neither first nor last) with the closed form. Where a
/// checkpoint holds several layers, that is the first layer of one. `ledger` is
/// build_ledger(trace). Errors: the reason why there is nothing to compare, for example a stack
/// without a middle layer.
models::Result<ClosedFormCheck> check_against_closed_form(const Trace& trace, const Ledger& ledger);
models::Result<ClosedFormCheck> check_against_closed_form(const Trace& trace);

/// "Layer 1 saves 452,984,832 B for backward, equal to the closed form n(16e+2)+T(2e+1)+4Rs."
std::string to_sentence(const ClosedFormCheck& check);
/// The same below rows of other layers: "Checked on the middle layer, 12: it saves ...".
std::string to_sentence_below_rows(const ClosedFormCheck& check);

}  // namespace profiler
