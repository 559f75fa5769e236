// Boxing: costs along one mesh axis, and paths on meshes of several.
#include "strategies/sbp/boxing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

#include "base/error.hpp"
#include "strategies/sbp/boxing_paths.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

constexpr double kBytes = 1'600.0;
constexpr AxisLink kLink{Seconds{1e-3}, BytesPerSecond{1e6}};

Sbp sbp(const char* text) {
  return parse_sbp(text);
}

/// `collective, bytes per rank, OneFlow's bytes, milliseconds`
std::string costs(const char* from, const char* to, int ranks, const BoxingRules& rules = {}) {
  const auto op = boxing_op(sbp(from), sbp(to), ranks, rules);
  const auto total = oneflow_bytes(sbp(from), sbp(to), kBytes, ranks, rules);
  REQUIRE(op.has_value() == total.has_value());
  if (!op) return "not allowed";
  return fmt::format("{}, {:g}, {:g}, {:g}", name_of(*op), bytes_sent(*op, kBytes, ranks), *total,
                     ring_time(*op, kBytes, ranks, kLink).value() * 1e3);
}

std::string text_of(const BoxingStep& step) {
  const std::string axes = step.first_axis == step.last_axis ? fmt::format("{}", step.first_axis)
                                                             : fmt::format("{}-{}", step.first_axis, step.last_axis);
  return fmt::format("{} {}->{} {} {:g}", axes, simsync::text_of(step.from), simsync::text_of(step.to),
                     name_of(step.op), step.bytes_per_rank);
}

/// Steps in their order: mesh axes, entries, collective, bytes of a rank.
std::string text_of(const BoxingPath& path) {
  std::vector<std::string> steps;
  for (const BoxingStep& step : path.steps) steps.push_back(text_of(step));
  return fmt::format("{}", fmt::join(steps, "; "));
}

const DeviceMesh& two_by_four() {
  static const DeviceMesh kMesh({{"outer", 2}, {"inner", 4}});
  return kMesh;
}

/// 1,600 bytes: 20 x 20 floats; the outer axis 10 times as slow.
BoxingPaths paths(const BoxingOptions& options = {}, TensorShape shape = {20, 20}) {
  return {two_by_four(),
          {{Seconds{0.0}, BytesPerSecond{1e6}}, {Seconds{0.0}, BytesPerSecond{1e7}}},
          {std::move(shape), 4.0},
          options};
}

BoxingPath between(const char* from, const char* to, const BoxingOptions& options = {}, TensorShape shape = {20, 20}) {
  return paths(options, std::move(shape)).path(parse_sbp_tuple(from), parse_sbp_tuple(to));
}

constexpr BoxingOptions kFewestBytes{.measure = BoxingMeasure::BytesPerRank};

/// All tuples of the tensor that fit.
std::vector<SbpTuple> all_tuples(const TensorShape& shape, const DeviceMesh& mesh) {
  std::vector<Sbp> entries{Sbp::broadcast(), Sbp::partial()};
  for (std::size_t axis = 0; axis < shape.size(); ++axis) entries.push_back(Sbp::split(static_cast<int>(axis)));
  std::vector<SbpTuple> out{{}};
  for (int a = 0; a < mesh.axis_count(); ++a) {
    std::vector<SbpTuple> longer;
    for (const SbpTuple& tuple : out) {
      for (const Sbp entry : entries) {
        longer.push_back(tuple);
        longer.back().push_back(entry);
      }
    }
    out = std::move(longer);
  }
  std::erase_if(out, [&](const SbpTuple& tuple) { return misfit(shape, tuple, mesh).has_value(); });
  return out;
}

/// Elements of a matrix that a rank holds, or addends of them.
std::set<std::pair<std::int64_t, std::int64_t>> held(const TensorShape& shape, const SbpTuple& tuple,
                                                     const DeviceMesh& mesh, int rank) {
  const Piece piece = local_piece(shape, tuple, mesh, mesh.coordinates(rank));
  std::set<std::pair<std::int64_t, std::int64_t>> out;
  for (std::int64_t i = 0; i < piece.shape[0]; ++i)
    for (std::int64_t j = 0; j < piece.shape[1]; ++j) out.emplace(piece.begin[0] + i, piece.begin[1] + j);
  return out;
}

/// Takes a step, after a check that each rank then holds nothing that no rank of its group had before.
SbpTuple after_step(const TensorShape& shape, const SbpTuple& before, const BoxingStep& step, const DeviceMesh& mesh) {
  SbpTuple after = before;
  std::vector<int> axes;
  for (int a = step.first_axis; a <= step.last_axis; ++a) {
    CHECK(before[static_cast<std::size_t>(a)] == step.from);
    after[static_cast<std::size_t>(a)] = step.to;
    axes.push_back(a);
  }
  const std::vector<int> groups = mesh.group_of(axes);
  std::map<int, std::set<std::pair<std::int64_t, std::int64_t>>> available;  // by group
  for (int rank = 0; rank < mesh.ranks(); ++rank)
    available[groups[static_cast<std::size_t>(rank)]].merge(held(shape, before, mesh, rank));
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const auto& have = available[groups[static_cast<std::size_t>(rank)]];
    const auto wanted = held(shape, after, mesh, rank);
    CHECK(std::includes(have.begin(), have.end(), wanted.begin(), wanted.end()));
  }
  return after;
}

}  // namespace

TEST_CASE("boxing along one axis by hand", "[sbp]") {
  // T = 1600, p = 4, 1 ms a message, 1 MB/s. All-to-all: T 3/16 = 300 bytes in 3 + 0.3 ms, T 3/4 = 1200 in all.
  // All-gather and reduce-scatter: T 3/4 = 1200 in 3 + 1.2 ms, T 3 = 4800 in all. All-reduce: twice that.
  CHECK(costs("S(0)", "S(0)", 4) == "none, 0, 0, 0");
  CHECK(costs("P", "P", 4) == "none, 0, 0, 0");
  CHECK(costs("S(0)", "S(1)", 4) == "all-to-all, 300, 1200, 3.3");
  CHECK(costs("S(1)", "B", 4) == "all-gather, 1200, 4800, 4.2");
  CHECK(costs("P", "S(0)", 4) == "reduce-scatter, 1200, 4800, 4.2");
  CHECK(costs("P", "B", 4) == "all-reduce, 2400, 9600, 8.4");
  CHECK(costs("B", "S(0)", 4) == "slice, 0, 1, 0");
  CHECK(costs("P", "B", 1) == "none, 0, 0, 0");
}

TEST_CASE("partial sums of consumers are penalized as in OneFlow", "[sbp]") {
  // 4 T (4 + 4) = 51200.
  CHECK(costs("B", "P", 4) == "zero-fill, 0, 51200, 0");
  CHECK(costs("B", "P", 4, {.partial = PartialPolicy::Slight}) == "zero-fill, 0, 1, 0");
  CHECK(costs("B", "P", 4, {.partial = PartialPolicy::Strict}) == "not allowed");
  CHECK(costs("S(0)", "P", 4) == "not allowed");
  CHECK(costs("S(0)", "P", 4, {.split_to_partial = true}) == "zero-fill, 0, 51200, 0");
  CHECK(costs("S(0)", "P", 4, {.partial = PartialPolicy::Strict, .split_to_partial = true}) == "not allowed");
}

TEST_CASE("OneFlow's bytes between different sets of devices", "[sbp]") {
  // Two ranks to four: T; to B 3 T more, from P 1 T more; into P 4 T (2 + 4) more.
  const auto total = [](const char* from, const char* to, const BoxingRules& rules = {}) {
    return oneflow_bytes(sbp(from), sbp(to), kBytes, DeviceSets{2, 4}, rules);
  };
  CHECK(total("S(0)", "S(0)") == kBytes);
  CHECK(total("B", "S(1)") == kBytes);
  CHECK(total("S(0)", "B") == 4.0 * kBytes);
  CHECK(total("P", "B") == 5.0 * kBytes);
  CHECK(total("B", "P") == 25.0 * kBytes);
  CHECK(total("S(0)", "P") == std::nullopt);
  CHECK(total("P", "P") == std::nullopt);
  CHECK(total("P", "P", {.split_to_partial = true}) == 26.0 * kBytes);
  CHECK(total("B", "P", {.partial = PartialPolicy::Strict}) == std::nullopt);
}

TEST_CASE("tuples that differ along one mesh axis", "[sbp]") {
  // Groups of 4 have T/2: all-reduce 2 x 800 x 3/4 = 1200 a rank, 120 us; 8 ranks: 9600 in all = 2 T 3.
  const BoxingPath split = between("(S(0),P)", "(S(0),B)");
  CHECK(text_of(split) == "1 P->B all-reduce 1200");
  CHECK(split.oneflow_bytes == 6.0 * kBytes);
  CHECK_THAT(split.time.value(), WithinRel(120e-6, 1e-12));
  // Where the other axis has copies, both groups reduce T: 2 x 1600 x 3/4 = 2400; in all 2 x 2 T 3.
  const BoxingPath copied = between("(B,P)", "(B,B)");
  CHECK(text_of(copied) == "1 P->B all-reduce 2400");
  CHECK(copied.oneflow_bytes == 12.0 * kBytes);
  CHECK(between("(S(0),P)", "(S(0),P)").steps.empty());
}

TEST_CASE("S to P takes a copy on the way unless it may be direct", "[sbp]") {
  // All-gather of T/2 over 4: 800 x 3/4 = 600.
  CHECK(text_of(between("(S(0),S(1))", "(S(0),P)")) == "1 S(1)->B all-gather 600; 1 B->P zero-fill 0");
  CHECK(text_of(between("(S(0),S(1))", "(S(0),P)", {.rules = {.split_to_partial = true}})) == "1 S(1)->P zero-fill 0");
  CHECK_THROWS_WITH(between("(B,B)", "(B,P)", {.rules = {.partial = PartialPolicy::Strict}}),
                    "no collectives lead from layout (B,B) to (B,P): none makes a partial sum under this policy");
  CHECK_THROWS_WITH(between("(B,B)", "(B,S(2))"),
                    "layout (B,S(2)) splits axis 2 of a tensor of shape [20, 20], which has 2 axes");
}

TEST_CASE("an all-reduce over both axes is hierarchical where that is faster", "[sbp]") {
  // Reduce-scatter within (1600 x 3/4 = 1200 at 10 MB/s), all-reduce of T/4 between (2 x 400/2 = 400 at 1 MB/s),
  // all-gather within: 120 + 400 + 120 us. Over all eight ranks at once: 2 x 1600 x 7/8 = 2800 at 1 MB/s.
  const BoxingPath path = between("(P,P)", "(B,B)");
  REQUIRE(path.steps.size() == 3);
  CHECK(path.steps[0].op == BoxingOp::ReduceScatter);
  CHECK(path.steps[0].first_axis == 1);
  CHECK(path.steps[1].op == BoxingOp::AllReduce);
  CHECK(path.steps[1].first_axis == 0);
  CHECK(path.steps[2].op == BoxingOp::AllGather);
  CHECK_THAT(path.time.value(), WithinRel(640e-6, 1e-12));
  // The bytes are the same 2800 either way, so that the fewest steps win: one.
  CHECK(text_of(between("(P,P)", "(B,B)", kFewestBytes)) == "0-1 P->B all-reduce 2800");
  CHECK_THAT(path.bytes_per_rank, WithinRel(2'800.0, 1e-12));
}

TEST_CASE("one tensor axis that two mesh axes split", "[sbp]") {
  // A step along the outer axis would gather pieces that are not neighbors. By the fewest bytes: all-to-all of T/2
  // within to columns 800 x 3/16 = 150, all-gather between of T/4: 400/2 = 200, all-to-all of T within back: 1600 x
  // 3/16 = 300. Gathers of T/2 within (600) and T between (800) would send 1400.
  CHECK(text_of(between("(S(0),S(0))", "(B,S(0))", kFewestBytes)) ==
        "1 S(0)->S(1) all-to-all 150; 0 S(0)->B all-gather 200; 1 S(1)->S(0) all-to-all 300");
  // The inner axis is free to change.
  CHECK(text_of(between("(S(0),S(0))", "(S(0),B)")) == "1 S(0)->B all-gather 600");
  CHECK(text_of(between("(S(0),B)", "(S(0),S(0))")) == "1 B->S(0) slice 0");
}

TEST_CASE("axes take part in a split together only where the pieces agree", "[sbp]") {
  const auto first_step = [](TensorShape shape) {
    const BoxingPath path = between("(S(0),S(0))", "(B,B)", kFewestBytes, std::move(shape));
    return std::make_pair(path.steps.front().first_axis, path.steps.front().last_axis);
  };
  // Rows modulo 8: 0, 1 and 7 together; 10 rows are 2, 2, 1, ... or 2, 1, 1, 1, 2, 1, 1, 1.
  CHECK(first_step({16, 20}) == std::make_pair(0, 1));
  CHECK(first_step({17, 20}) == std::make_pair(0, 1));
  CHECK(first_step({15, 20}) == std::make_pair(0, 1));
  CHECK(first_step({10, 20}) == std::make_pair(1, 1));
  // 16 x 25 floats, T = 1600: an all-to-all over all eight: 1600 x 7/64.
  CHECK(text_of(between("(S(0),S(0))", "(S(1),S(1))", kFewestBytes, {16, 25})) == "0-1 S(0)->S(1) all-to-all 175");
}

TEST_CASE("a detour where it is cheaper and asked for", "[sbp]") {
  // Direct: T over 2 ranks, 800 bytes at 1 MB/s: 800 us. Slices first: T/4 between, 200 us; then T within, 1200 bytes
  // at 10 MB/s: 120 us.
  CHECK(text_of(between("(S(0),B)", "(B,B)")) == "0 S(0)->B all-gather 800");
  const BoxingPath detour = between("(S(0),B)", "(B,B)", {.direct = false});
  CHECK(text_of(detour) == "1 B->S(1) slice 0; 0 S(0)->B all-gather 200; 1 S(1)->B all-gather 1200");
  CHECK_THAT(detour.time.value(), WithinRel(320e-6, 1e-12));
}

TEST_CASE("OneFlow's measure counts a start-up for each step", "[sbp]") {
  // 6 T = 9600 bytes and one start-up.
  BoxingPaths oneflow = paths({.measure = BoxingMeasure::OneFlow});
  CHECK(oneflow.cost(parse_sbp_tuple("(S(0),P)"), parse_sbp_tuple("(S(0),B)")) == 9'600.0 + 1.65e4);
  CHECK(oneflow.cost(parse_sbp_tuple("(S(0),P)"), parse_sbp_tuple("(S(0),P)")) == 0.0);
  BoxingPaths bare = paths({.measure = BoxingMeasure::OneFlow, .oneflow_startup = 0.0});
  CHECK(bare.cost(parse_sbp_tuple("(P,P)"), parse_sbp_tuple("(B,B)")) == 14.0 * kBytes);
}

TEST_CASE("mesh axes of one rank count as equal", "[sbp]") {
  const DeviceMesh mesh({{"a", 1}, {"b", 4}});
  BoxingPaths one(mesh, {kLink, kLink}, {{20, 20}, 4.0});
  CHECK(one.path(parse_sbp_tuple("(P,B)"), parse_sbp_tuple("(S(0),B)")).steps.empty());
  CHECK(text_of(one.path(parse_sbp_tuple("(P,P)"), parse_sbp_tuple("(B,B)"))) == "1 P->B all-reduce 2400");
}

TEST_CASE("every step of every path has what it needs in its groups", "[sbp]") {
  // Unequal pieces; a column alone on 2 x 2 x 2 ranks, where three mesh axes split one tensor axis.
  const std::pair<DeviceMesh, TensorShape> cases[] = {{DeviceMesh({{"a", 2}, {"b", 3}}), {7, 8}},
                                                      {DeviceMesh({{"a", 2}, {"b", 2}, {"c", 2}}), {9, 1}},
                                                      {DeviceMesh({{"a", 2}, {"b", 2}, {"c", 2}}), {10, 1}}};
  for (const auto& [mesh, shape] : cases) {
    const std::vector<AxisLink> links(static_cast<std::size_t>(mesh.axis_count()), kLink);
    BoxingPaths all(mesh, links, {shape, 4.0}, {.direct = false});
    const std::vector<SbpTuple> tuples = all_tuples(shape, mesh);
    for (const SbpTuple& from : tuples) {
      for (const SbpTuple& to : tuples) {
        SbpTuple now = from;
        for (const BoxingStep& step : all.path(from, to).steps) now = after_step(shape, now, step, mesh);
        CHECK(now == to);
      }
    }
  }
}

TEST_CASE("no way over a third tuple is cheaper than the path", "[sbp]") {
  const DeviceMesh mesh({{"a", 2}, {"b", 3}});
  const std::vector<AxisLink> links{kLink, {Seconds{1e-4}, BytesPerSecond{1e7}}};
  for (const BoxingMeasure measure : {BoxingMeasure::Time, BoxingMeasure::BytesPerRank, BoxingMeasure::OneFlow}) {
    BoxingPaths any(mesh, links, {{7, 8}, 4.0}, {.measure = measure, .direct = false});
    BoxingPaths direct(mesh, links, {{7, 8}, 4.0}, {.measure = measure});
    const std::vector<SbpTuple> tuples = all_tuples({7, 8}, mesh);
    for (const SbpTuple& from : tuples) {
      for (const SbpTuple& to : tuples) {
        const double cost = any.cost(from, to);
        CHECK(cost <= direct.cost(from, to) * (1.0 + 1e-12));
        for (const SbpTuple& over : tuples)
          if (cost > (any.cost(from, over) + any.cost(over, to)) * (1.0 + 1e-12))
            FAIL(simsync::text_of(from) << " to " << simsync::text_of(to) << " over " << simsync::text_of(over));
      }
    }
  }
}

TEST_CASE("links of mesh axes on nodes", "[sbp]") {
  // 2 nodes of 4 ranks; tp (4) within. Along dp each rank has a ring of its own out of the node: a quarter each.
  const NodeLinks nodes{.ranks_per_node = 4,
                        .within = {Seconds{1e-6}, BytesPerSecond{100e9}},
                        .between = {Seconds{5e-6}, BytesPerSecond{12e9}}};
  const auto links = links_of(DeviceMesh({{"dp", 2}, {"tp", 4}}), nodes);
  CHECK(links[0].bandwidth.value() == 3e9);
  CHECK(links[0].startup.value() == 5e-6);
  CHECK(links[1].bandwidth.value() == 100e9);
  // One axis of 8: one ring through both nodes. tp outermost: two rings leave a node along tp.
  CHECK(links_of(DeviceMesh({{"dp", 8}}), nodes)[0].bandwidth.value() == 12e9);
  const auto swapped = links_of(DeviceMesh({{"dp", 2}, {"tp", 4}}, {"dp", "tp"}), nodes);
  CHECK(swapped[0].bandwidth.value() == 100e9);
  CHECK(swapped[1].bandwidth.value() == 6e9);
  CHECK_THROWS_WITH(links_of(DeviceMesh({{"dp", 6}}), nodes), "a mesh of 6 ranks on nodes of 4: expected full nodes");
}

TEST_CASE("limits of boxing", "[sbp]") {
  CHECK_THROWS_WITH(BoxingPaths(two_by_four(), {kLink}, {{4, 4}, 4.0}), "1 links for 2 mesh axes: expected one each");
  // Four entries along eight axes: 65536 tuples.
  std::vector<MeshAxis> axes;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) axes.push_back({name, 2});
  CHECK_THROWS_WITH(BoxingPaths(DeviceMesh(axes), std::vector<AxisLink>(8, kLink), {{512, 512}, 4.0}),
                    "a tensor of 2 axes on 8 mesh axes has too many layouts: expected at most 16384");
}
