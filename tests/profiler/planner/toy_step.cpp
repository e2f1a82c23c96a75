#include "tests/profiler/planner/toy_step.h"

#include "tests/support/trace_builder.h"

#include <fmt/format.h>
#include <atomic>

#include <utility>
#include <vector>

namespace tests {
namespace {

using namespace profiler;

std::string shape_text(int64_t rows, int64_t columns) {
    return fmt::format("[{}, {}]", rows, columns);
}

/// A tensor of [rows, columns] fp32 words.
struct Matrix {
    Id<Allocation> allocation;
    int64_t rows = 0;
    int64_t columns = 0;
    int64_t words() const { return rows * columns; }
};

class ToyStep {
public:
    ToyStep(const models::Workload& workload, const ToyOptions& options)
        : w_(workload), options_(options), b_(workload) {
        b_.trace().runs.set<&Run::source>(Id<Run>(0), Source::kPredicted);
        b_.trace().runs.set<&Run::time_basis>(Id<Run>(0), TimeBasis::kEventOrder);
    }

    Trace make() {
        b_.allocate({.bytes = 8519680, .category = Category::kWorkspace, .name = "cublas"});
        for (int64_t i = 0; i < w_.model.num_layers; ++i) add_layer_state(i);
        if (options_.warm_up_bytes >= 0) {
            phases();
            if (options_.warm_up_bytes > 0) {
                b_.free(b_.allocate({.bytes = options_.warm_up_bytes}));
            }
        }
        for (int i = 0; i < options_.num_steps; ++i) step();
        return b_.finish();
    }

private:
    int64_t rows() const { return w_.batch_size * w_.seq_len; }
    int64_t hidden() const { return w_.model.hidden_size; }
    int64_t inner() const { return w_.model.intermediate_size; }
    models::Recipe recipe(std::size_t layer) const {
        return models::recipe_of_layer(models::layer_recipes_of(w_), static_cast<int64_t>(layer));
    }
    bool checkpoints(std::size_t layer) const {
        return recipe(layer).checkpoint == models::Checkpoint::kPerLayer;
    }
    bool keeps_up(std::size_t layer) const {
        return checkpoints(layer) || recipe(layer).gelu != models::Gelu::kInPlace;
    }

    Matrix matrix(int64_t rows, int64_t columns, Category category, const std::string& name,
                  Id<Op> op = {}) {
        return {b_.allocate({.bytes = rows * columns * 4,
                             .category = category,
                             .op = op,
                             .name = name,
                             .shape = shape_text(rows, columns)}),
                rows, columns};
    }

    void add_layer_state(int64_t layer) {
        const std::string prefix = fmt::format("encoder.layer.{}.", layer);
        module_paths_.push_back(b_.module_path(fmt::format("encoder.layer.{}", layer), layer));
        up_.push_back(matrix(hidden(), inner(), Category::kParameter, prefix + "up.weight"));
        down_.push_back(matrix(inner(), hidden(), Category::kParameter, prefix + "down.weight"));
        for (int moment = 0; moment < 4; ++moment) {
            matrix(hidden(), inner(), Category::kOptimizerState, prefix + "moment");
        }
    }

    Id<Op> op(std::string_view name, Id<ModulePath> module_path, OpClass op_class,
              const std::vector<Matrix>& reads, int64_t flop) {
        const Id<Op> parent = b_.op(fmt::format("{}_caller", name), module_path);
        const Id<Op> op = b_.op(name, module_path);
        Table<Op>& ops = b_.trace().ops;
        ops.set<&Op::parent>(op, parent);
        ops.set<&Op::op_class>(op, op_class);
        ops.set<&Op::flop>(op, flop);
        for (const Matrix& read : reads) {
            ops.set<&Op::read_words>(op, ops.get<&Op::read_words>(op) + read.words());
            add_edge(op, read, Access::kRead);
        }
        return op;
    }

    void write(Id<Op> op, const Matrix& matrix) {
        b_.trace().ops.set<&Op::written_words>(op, matrix.words());
        add_edge(op, matrix, Access::kWrite);
    }

    /// As autograd sees it: a transposed factor is a view with the shape that it multiplies in.
    void add_edge(Id<Op> op, const Matrix& matrix, Access access) {
        if (!options_.has_op_tensors) return;
        const Id<Storage> storage =
            b_.trace().allocations.get<&Allocation::storage>(matrix.allocation);
        const Id<Tensor> tensor =
            b_.trace().tensors.append({.storage = storage,
                                       .shape = b_.text(shape_text(matrix.rows, matrix.columns)),
                                       .dtype = DType::kFloat32});
        b_.trace().op_tensors.append(
            {.op = op, .tensor = tensor, .access = access, .words = matrix.words()});
    }

    static Matrix transposed(const Matrix& m) { return {m.allocation, m.columns, m.rows}; }

    Matrix product(const Matrix& a, const Matrix& b, Category category, Id<ModulePath> module_path,
                   const std::string& name) {
        const Id<Op> call = op("aten::mm", module_path, OpClass::kContraction, {a, b},
                               2 * a.rows * a.columns * b.columns);
        const Matrix out = matrix(a.rows, b.columns, category, name, call);
        write(call, out);
        return out;
    }

    Matrix map(std::string_view name, const std::vector<Matrix>& inputs, Category category,
               Id<ModulePath> module_path, const std::string& out_name) {
        const Id<Op> call =
            op(name, module_path, OpClass::kElementWise, inputs, 5 * inputs.front().words());
        const Matrix out =
            matrix(inputs.front().rows, inputs.front().columns, category, out_name, call);
        write(call, out);
        return out;
    }

    void free(const Matrix& matrix) { b_.free(matrix.allocation); }

    struct Kept {
        Matrix input, up, gelu;
        std::vector<Id<Save>> saves;
    };

    Kept layer_forward(const Matrix& input, std::size_t layer) {
        const Id<ModulePath> module_path = module_paths_[layer];
        Kept kept{.input = input};
        kept.up = product(input, up_[layer], Category::kActivation, module_path, "gelu_input");
        kept.gelu = map("aten::gelu", {kept.up}, Category::kActivation, module_path, "gelu_output");
        return kept;
    }

    void step() {
        b_.begin_step();
        phases();
        b_.end_step(1.0);
    }

    void phases() {
        b_.begin_phase(PhaseKind::kForward);
        Matrix x = matrix(rows(), hidden(), Category::kInput, "hidden_states");
        std::vector<Kept> layers;
        for (std::size_t i = 0; i < up_.size(); ++i) {
            Kept kept = layer_forward(x, i);
            x = product(kept.gelu, down_[i], Category::kActivation, module_paths_[i],
                        "hidden_states");
            if (checkpoints(i)) {
                free(kept.up);
                free(kept.gelu);
            } else if (!keeps_up(i)) {
                free(kept.up);
            }
            const Id<Save> save = b_.save(kept.input.allocation, Id<Op>(b_.trace().ops.size() - 1));
            kept.saves.push_back(save);
            layers.push_back(kept);
        }
        if (options_.extra_from_batch > 0 && w_.batch_size >= options_.extra_from_batch) {
            free(matrix(rows(), 1, Category::kTemporary, "padding", b_.op("aten::sum")));
        }
        b_.end_phase();
        backward(x, layers);
        update();
    }

    void backward(Matrix x, std::vector<Kept>& layers) {
        b_.begin_phase(PhaseKind::kBackward);
        Matrix grad = matrix(rows(), hidden(), Category::kTemporary, "grad");
        free(x);
        for (std::size_t i = layers.size(); i-- > 0;) {
            Kept& kept = layers[i];
            if (checkpoints(i)) {
                const Kept again = layer_forward(kept.input, i);
                kept.up = again.up;
                kept.gelu = again.gelu;
            }
            const Id<ModulePath> module_path = module_paths_[i];
            gradients_.push_back(product(transposed(kept.gelu), grad, Category::kGradient,
                                         module_path, "down.grad"));
            const Matrix dgelu =
                product(grad, transposed(down_[i]), Category::kTemporary, module_path, "dgelu");
            free(grad);
            const Matrix dup = map("aten::gelu_backward", {dgelu, kept.gelu}, Category::kTemporary,
                                   module_path, "dup");
            const int passes = keeps_up(i) ? 0 : options_.in_place_passes;
            for (int pass = 0; pass < passes; ++pass) {
                free(map("aten::mul", {kept.gelu}, Category::kTemporary, module_path, "scratch"));
            }
            free(dgelu);
            free(kept.gelu);
            if (keeps_up(i)) free(kept.up);
            gradients_.push_back(
                product(transposed(kept.input), dup, Category::kGradient, module_path, "up.grad"));
            grad = product(dup, transposed(up_[i]), Category::kTemporary, module_path, "grad");
            free(dup);
            for (const Id<Save> save : kept.saves) b_.release(save);
            free(kept.input);
        }
        free(grad);
        b_.end_phase();
    }

    void update() {
        b_.begin_phase(PhaseKind::kOptimizer);
        for (const Matrix& gradient : gradients_) {
            const Id<Op> call = b_.op("aten::_foreach_sqrt");
            free(
                matrix(gradient.rows, gradient.columns, Category::kTemporary, "denominator", call));
        }
        for (const Matrix& gradient : gradients_) free(gradient);
        gradients_.clear();
        b_.end_phase();
    }

    models::Workload w_;
    ToyOptions options_;
    TraceBuilder b_;
    std::vector<Id<ModulePath>> module_paths_;
    std::vector<Matrix> up_, down_, gradients_;
};

}  // namespace

models::Workload toy_workload(int64_t batch_size) {
    models::Workload workload;
    workload.model.name = "toy";
    workload.model.num_layers = 2;
    workload.model.hidden_size = 64;
    workload.model.num_heads = 2;
    workload.model.intermediate_size = 256;
    workload.seq_len = 32;
    workload.batch_size = batch_size;
    return workload;
}

profiler::Trace make_toy_step(const models::Workload& workload, const ToyOptions& options) {
    return ToyStep(workload, options).make();
}

profiler::StepSource toy_source(const ToyOptions& options, int* calls) {
    return
        [options, calls](const StepToTrace& step) -> models::Result<std::shared_ptr<const Trace>> {
            if (calls != nullptr) ++std::atomic_ref(*calls);  // plans trace from several threads
            return std::make_shared<const Trace>(make_toy_step(step.workload, options));
        };
}

}  // namespace tests
