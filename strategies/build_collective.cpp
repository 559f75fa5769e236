// Data-parallel frameworks on collectives: ddp, horovod, and the textbook bsp, wfbp, mg-wfbp.
#include "strategies/families.hpp"

namespace simsync {
namespace {

/// Every variable on its own all-reduce; how they are merged is the graph level's fusion.
void all_reduce_everything(const BuildRequest& request, Strategy& strategy, bool sparse_as_dense) {
  for (VariableId id = 0; id < request.model.variables().size(); ++id) {
    strategy.variables.push_back(whole_variable(request.model, id, AllReduceSynchronizer{}));
    strategy.variables.back().sparse_as_dense = sparse_as_dense && request.model.variable(id).sparse;
  }
}

/// Gradients are copied into a bucket and back unless they already live there.
void build_ddp(const BuildRequest& request, const Options& options, Strategy& strategy) {
  strategy.graph.parallel = model_parallel(request, options);
  all_reduce_everything(request, strategy, true);
  Fusion& fusion = strategy.graph.fusion;
  fusion.kind = FusionKind::Buckets;
  fusion.limit = options.bytes("bucket", 1);
  fusion.first_limit = options.bytes("first_bucket", 1);
  fusion.copies = !options.boolean("gradient_as_bucket_view");
}

void build_horovod(const BuildRequest& request, const Options& options, Strategy& strategy) {
  all_reduce_everything(request, strategy, options.boolean("sparse_as_dense"));
  Fusion& fusion = strategy.graph.fusion;
  fusion.kind = FusionKind::Cycle;
  fusion.threshold = options.bytes("threshold", 1);
  fusion.cycle = options.seconds("cycle");
  fusion.copies = true;
}

/// bsp with parameter servers: whole tensors on the least loaded hosts, nothing before backward has ended.
void build_bsp_ps(const BuildRequest& request, const Options& options, Strategy& strategy) {
  Placement placement(chosen_servers(request, options));
  for (VariableId id = 0; id < request.model.variables().size(); ++id) {
    PsSynchronizer ps;
    ps.server = placement.least_loaded(static_cast<double>(request.model.variable(id).bytes().count));
    ps.local_replication = true;
    strategy.variables.push_back(whole_variable(request.model, id, ps));
    strategy.variables.back().sparse_as_dense = request.model.variable(id).sparse;
  }
}

void build_bsp(const BuildRequest& request, const Options& options, Strategy& strategy) {
  strategy.graph.overlap = Overlap::None;
  strategy.graph.fusion.kind =
      options.one_of<FusionKind>("fusion", {{"none", FusionKind::None}, {"single", FusionKind::Single}});
  const bool ps = options.one_of<bool>("sync", {{"all-reduce", false}, {"ps", true}});
  if (ps) {
    build_bsp_ps(request, options, strategy);
  } else {
    (void)chosen_servers(request, options);  // a wrong value is an error even where it has no effect
    all_reduce_everything(request, strategy, true);
  }
}

/// With a bucket size, tensors are merged as ddp does with both limits equal.
void build_wfbp(const BuildRequest& request, const Options& options, Strategy& strategy) {
  all_reduce_everything(request, strategy, true);
  Fusion& fusion = strategy.graph.fusion;
  const Bytes bucket = options.bytes("bucket", 0);
  fusion.kind = bucket.count == 0 ? FusionKind::None : FusionKind::Buckets;
  if (bucket.count > 0) fusion.first_limit = fusion.limit = bucket;
}

void build_mg_wfbp(const BuildRequest& request, const Options&, Strategy& strategy) {
  all_reduce_everything(request, strategy, true);
  strategy.graph.fusion.kind = FusionKind::MergedGradient;
  strategy.graph.fusion.copies = true;
}

std::vector<OptionInfo> ddp_options() {
  return joined(joined({{"bucket", "25MiB", "size at which a bucket is closed"},
                        {"first_bucket", "1MiB", "the same for the first bucket, so that it leaves early"},
                        {"gradient_as_bucket_view", "false", "true: gradients live in the buckets, no copies"}},
                       model_parallel_options()),
                collective_options());
}

std::vector<OptionInfo> horovod_options() {
  return joined(
      {{"threshold", "64MiB", "most bytes of a fused message (128MiB in releases from 2020 on)"},
       {"cycle", "5ms", "period of the background loop (1ms in releases from 2020 on)"},
       {"sparse_as_dense", "false", "true: sparse gradients travel as whole tensors; false: as all-gathered rows"}},
      collective_options());
}

std::vector<OptionInfo> bsp_options() {
  return joined(joined({{"sync", "all-reduce", "all-reduce or ps (load-balanced parameter servers)"},
                        {"fusion", "none", "none: one collective per variable; single: everything in one"}},
                       server_options()),
                collective_options());
}

}  // namespace

std::vector<BuilderInfo> collective_builders() {
  return {
      {"ddp", "Buckets all-reduced in order while backward runs (PyTorch DistributedDataParallel).", ddp_options(),
       build_ddp},
      {"horovod", "Every cycle, what is ready is fused up to a threshold and all-reduced (Horovod).", horovod_options(),
       build_horovod},
      {"bsp", "Communication after the whole backward pass, no overlap (textbook bulk-synchronous SGD).", bsp_options(),
       build_bsp},
      {"wfbp", "One all-reduce per variable as soon as its gradient is ready (wait-free backpropagation).",
       joined({{"bucket", "0B", "merge tensors up to this size; 0B: no merging"}}, collective_options()), build_wfbp},
      {"mg-wfbp", "Wait-free with gradients merged while it shortens the step (MG-WFBP).", collective_options(),
       build_mg_wfbp}};
}

}  // namespace simsync
