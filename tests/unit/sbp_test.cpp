// Device meshes, layouts of tensors, and the signatures of operators.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "strategies/sbp/device_mesh.hpp"
#include "strategies/sbp/layout.hpp"
#include "strategies/sbp/op_signatures.hpp"
#include "strategies/sbp/signature.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

template <class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.diagnostics().front().message;
  } catch (const PlanError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// `S(0),B -> S(0)` for each signature; those beyond OneFlow end in `*`.
std::vector<std::string> texts(const std::vector<OpSignature>& list) {
  std::vector<std::string> out;
  const auto joined = [](const std::vector<Sbp>& entries) {
    std::vector<std::string> each;
    for (const Sbp entry : entries) each.push_back(text_of(entry));
    return fmt::format("{}", fmt::join(each, ","));
  };
  for (const OpSignature& s : list)
    out.push_back(fmt::format("{} -> {}{}", joined(s.inputs), joined(s.outputs), s.beyond_oneflow ? " *" : ""));
  return out;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("ranks of a mesh are numbered with the last axis fastest", "[sbp]") {
  // 2 x 3: rank = 3 row + column.
  const DeviceMesh mesh({{"row", 2}, {"column", 3}});
  CHECK(mesh.ranks() == 6);
  CHECK(mesh.coordinates(4) == std::vector<int>{1, 1});
  CHECK(mesh.rank({1, 2}) == 5);
  CHECK(mesh.group_of({1}) == std::vector<int>{0, 0, 0, 1, 1, 1});
  CHECK(mesh.group_of({0}) == std::vector<int>{0, 1, 2, 0, 1, 2});
  CHECK(mesh.group_of({0, 1}) == std::vector<int>(6, 0));
  CHECK(mesh.group_of({}) == std::vector<int>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("the order of a mesh's ranks is not that of its axes", "[sbp]") {
  // tp innermost: rank = tp + 2 dp + 2 x 3 pp.
  const DeviceMesh mesh({{"pp", 2}, {"dp", 3}, {"tp", 2}}, {"tp", "dp", "pp"});
  CHECK(mesh.stride(mesh.find("tp")) == 1);
  CHECK(mesh.stride(mesh.find("dp")) == 2);
  CHECK(mesh.stride(mesh.find("pp")) == 6);
  // dp innermost: rank = dp + 3 tp + 6 pp; ranks 0, 1, 2 are a dp group, 0 and 3 a tp group.
  const DeviceMesh other({{"pp", 2}, {"dp", 3}, {"tp", 2}}, {"dp", "tp", "pp"});
  CHECK(other.group_of({1}) == std::vector<int>{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3});
  CHECK(other.group_of({2}) == std::vector<int>{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  for (int rank = 0; rank < other.ranks(); ++rank) CHECK(other.rank(other.coordinates(rank)) == rank);
}

TEST_CASE("what is wrong with a mesh is said", "[sbp]") {
  CHECK(message_of([] { DeviceMesh({}); }) == "a device mesh without axes: expected at least one");
  CHECK(message_of([] { DeviceMesh({{"tp", 0}}); }) == "mesh axis 'tp' has 0 ranks: expected at least 1");
  CHECK(message_of([] { DeviceMesh({{"", 2}}); }) == "a mesh axis without a name");
  CHECK(message_of([] { DeviceMesh({{"a", 2}, {"a", 2}}); }) == "mesh axis 'a' is given twice");
  CHECK(message_of([] {
          DeviceMesh({{"a", 1 << 20}, {"b", 2}});
        }) == "the device mesh has more than 1048576 ranks, the most that it may have");
  CHECK(message_of([] {
          DeviceMesh({{"a", 2}, {"b", 2}}, {"a"});
        }) == "the order of mesh axes is [a]: expected each of [a, b] once");
  CHECK(message_of([] {
          (void)DeviceMesh({{"dp", 2}, {"tp", 2}}).find("xp");
        }) == "no mesh axis 'xp': expected one of [dp, tp]");
}

TEST_CASE("layouts are read and written", "[sbp]") {
  for (const char* text : {"S(0)", "S(12)", "B", "P", "(S(0),B)", "(P,S(1),S(1))"})
    CHECK(text_of(parse_sbp_tuple(text)) == text);
  CHECK(parse_sbp_tuple(" ( S( 0 ) , P ) ") == SbpTuple{Sbp::split(0), Sbp::partial()});
  CHECK(parse_sbp_tuple("(B)") == SbpTuple{Sbp::broadcast()});
  for (const char* text : {"", "S", "S()", "S(-1)", "S(64)", "S(a)", "b", "S(0"})
    CHECK(message_of([&] { parse_sbp(text); }) ==
          fmt::format("'{}' is no layout: expected S(axis) with an axis from 0 to 63, B or P", text));
  CHECK(message_of([] { parse_sbp_tuple("(B,,P)"); }) ==
        "'' is no layout: expected S(axis) with an axis from 0 to 63, B or P");
  CHECK(message_of([] { parse_sbp_tuple("(B,P"); }) ==
        "'(B,P' has no closing parenthesis: expected a tuple such as (S(0),B)");
}

TEST_CASE("pieces of a tensor by hand", "[sbp]") {
  // 7 rows on 2 x 3 ranks, both axes split rows. Axis 0 first: 4 and 3 rows; then thirds: 2, 1, 1 and 1, 1, 1.
  const DeviceMesh mesh({{"a", 2}, {"b", 3}});
  const SbpTuple twice = parse_sbp_tuple("(S(0),S(0))");
  CHECK(local_shape({7, 5}, twice, mesh) == TensorShape{2, 5});
  const std::vector<std::int64_t> begins{0, 2, 3, 4, 5, 6};
  const std::vector<std::int64_t> lengths{2, 1, 1, 1, 1, 1};
  for (int rank = 0; rank < 6; ++rank) {
    const Piece piece = local_piece({7, 5}, twice, mesh, mesh.coordinates(rank));
    CHECK(piece.begin == std::vector<std::int64_t>{begins[static_cast<std::size_t>(rank)], 0});
    CHECK(piece.shape == TensorShape{lengths[static_cast<std::size_t>(rank)], 5});
  }
  // Rows in halves, columns in thirds; copies and addends have the whole shape.
  CHECK(local_shape({7, 5}, parse_sbp_tuple("(S(0),S(1))"), mesh) == TensorShape{4, 2});
  CHECK(local_shape({7, 5}, parse_sbp_tuple("(B,P)"), mesh) == TensorShape{7, 5});
}

TEST_CASE("a tensor that does not fit a layout", "[sbp]") {
  const DeviceMesh mesh({{"a", 2}, {"b", 3}});
  const auto why = [&](const TensorShape& shape, const char* tuple) {
    return misfit(shape, parse_sbp_tuple(tuple), mesh).value_or("it fits");
  };
  CHECK(why({6}, "(S(0),S(0))") == "it fits");
  CHECK(why({5}, "(S(0),S(0))") ==
        "layout (S(0),S(0)) splits axis 0 of a tensor of shape [5] into 6 pieces: expected at most 5");
  CHECK(why({5}, "(S(0),B)") == "it fits");
  CHECK(why({5}, "(S(1),B)") == "layout (S(1),B) splits axis 1 of a tensor of shape [5], which has 1 axes");
  CHECK(why({5}, "B") == "layout B has 1 entries: expected 2, one for each mesh axis");
  CHECK_THROWS_AS(local_shape({5}, parse_sbp_tuple("(S(0),S(0))"), mesh), PlanError);
}

TEST_CASE("signatures of products", "[sbp]") {
  CHECK(texts(signatures(matmul_call(4, 6, 8))) ==
        Texts{"S(0),B -> S(0)", "B,S(1) -> S(1)", "S(1),S(0) -> P", "P,B -> P", "B,P -> P", "B,B -> B"});
  // Attention scores: batch and heads are batch axes.
  const TensorOpCall batched{.inputs = {{2, 3, 4, 5}, {2, 3, 5, 6}}, .outputs = {{2, 3, 4, 6}}};
  CHECK(texts(signatures(batched)) == Texts{"S(2),B -> S(2)", "B,S(3) -> S(3)", "S(3),S(2) -> P", "P,B -> P",
                                            "B,P -> P", "S(0),S(0) -> S(0)", "S(1),S(1) -> S(1)", "B,B -> B"});
}

TEST_CASE("signatures of convolutions", "[sbp]") {
  const TensorShape x{8, 3, 32, 32};
  const TensorShape w{16, 3, 3, 3};
  const TensorShape y{8, 16, 30, 30};
  const SignatureRules more{.channel_splits = true};
  const TensorOpCall forward{.op = TensorOp::Conv, .inputs = {x, w, {16}}, .outputs = {y}};
  CHECK(texts(signatures(forward)) == Texts{"S(0),B,B -> S(0)", "B,B,B -> B"});
  CHECK(texts(signatures(forward, more)) ==
        Texts{"S(0),B,B -> S(0)", "B,S(0),S(0) -> S(1) *", "S(1),S(1),P -> P *", "B,B,B -> B"});
  const TensorOpCall without_bias{.op = TensorOp::Conv, .inputs = {x, w}, .outputs = {y}};
  CHECK(texts(signatures(without_bias)) == Texts{"S(0),B -> S(0)", "B,B -> B"});
  const TensorOpCall data_grad{.op = TensorOp::ConvDataGrad, .inputs = {y, w}, .outputs = {x}};
  CHECK(texts(signatures(data_grad)) == Texts{"S(0),B -> S(0)", "B,B -> B"});
  CHECK(texts(signatures(data_grad, more)) ==
        Texts{"S(0),B -> S(0)", "S(1),S(0) -> P *", "B,S(1) -> S(1) *", "B,B -> B"});
  const TensorOpCall filter_grad{.op = TensorOp::ConvFilterGrad, .inputs = {y, x}, .outputs = {w}};
  CHECK(texts(signatures(filter_grad)) == Texts{"S(0),S(0) -> P", "B,B -> B"});
  CHECK(texts(signatures(filter_grad, more)) ==
        Texts{"S(0),S(0) -> P", "S(1),B -> S(0) *", "B,S(1) -> S(1) *", "B,B -> B"});
}

TEST_CASE("signatures of look-ups", "[sbp]") {
  // indices [8, 9], table [5, 6, 7]; along axis 1: [5, 8, 9, 7].
  const TensorOpCall gather{
      .op = TensorOp::Gather, .inputs = {{8, 9}, {5, 6, 7}}, .outputs = {{5, 8, 9, 7}}, .axis = 1};
  CHECK(texts(signatures(gather)) ==
        Texts{"S(0),B -> S(1)", "S(1),B -> S(2)", "B,S(0) -> S(0)", "B,S(1) -> P", "B,S(2) -> S(3)", "B,B -> B"});
  const TensorOpCall embedding{.op = TensorOp::Embedding, .inputs = {{8, 9}, {100, 16}}, .outputs = {{8, 9, 16}}};
  CHECK(texts(signatures(embedding)) == Texts{"S(0),B -> S(0)", "S(1),B -> S(1)", "B,B -> B"});
  const TensorOpCall grad{.op = TensorOp::EmbeddingGrad, .inputs = {{8, 9, 16}, {8, 9}}, .outputs = {{100, 16}}};
  CHECK(texts(signatures(grad)) == Texts{"S(0),S(0) -> P", "S(1),S(1) -> P", "B,B -> B"});
}

TEST_CASE("signatures of normalizations and elementwise operators", "[sbp]") {
  const TensorShape x{8, 9, 16};
  const TensorOpCall norm{.op = TensorOp::LayerNorm, .inputs = {x, {16}, {16}}, .outputs = {x}, .axis = 2};
  CHECK(texts(signatures(norm)) == Texts{"S(0),B,B -> S(0)", "S(1),B,B -> S(1)", "B,B,B -> B"});
  const TensorOpCall norm_grad{
      .op = TensorOp::LayerNormParamGrad, .inputs = {x, x}, .outputs = {{16}, {16}}, .axis = 2};
  CHECK(texts(signatures(norm_grad)) == Texts{"S(0),S(0) -> P,P", "S(1),S(1) -> P,P", "B,B -> B,B"});
  const TensorOpCall softmax{.op = TensorOp::Softmax, .inputs = {x}, .outputs = {x}, .axis = 1};
  CHECK(texts(signatures(softmax)) == Texts{"S(0) -> S(0)", "S(2) -> S(2)", "B -> B"});
  const TensorOpCall sum{.op = TensorOp::Linear, .inputs = {{4, 5}, {4, 5}}, .outputs = {{4, 5}}};
  CHECK(texts(signatures(sum)) == Texts{"S(0),S(0) -> S(0)", "S(1),S(1) -> S(1)", "P,P -> P", "B,B -> B"});
  const TensorOpCall gelu{.op = TensorOp::NonLinear, .inputs = {{4, 5}}, .outputs = {{4, 5}}};
  CHECK(texts(signatures(gelu)) == Texts{"S(0) -> S(0)", "S(1) -> S(1)", "B -> B"});
}

TEST_CASE("signatures over a mesh", "[sbp]") {
  // Six signatures along each axis: 36. m = 3 cannot be cut into 2 x 2, which takes (S(0),S(0)) away.
  const DeviceMesh mesh({{"a", 2}, {"b", 2}});
  CHECK(signatures(matmul_call(4, 4, 4), mesh).size() == 36);
  CHECK(signatures(matmul_call(3, 4, 4), mesh).size() == 35);
  // m = 1 cannot be cut at all: what is left has another of the five along either axis.
  CHECK(signatures(matmul_call(1, 4, 4), mesh).size() == 25);
  const auto all = signatures(matmul_call(4, 4, 4), mesh);
  CHECK(text_of(all[1].inputs[0]) == "(S(0),B)");
  CHECK(text_of(all[1].inputs[1]) == "(B,S(1))");
  CHECK(text_of(all[1].outputs[0]) == "(S(0),S(1))");
}

TEST_CASE("outputs are derived along each mesh axis by itself", "[sbp]") {
  const DeviceMesh mesh({{"dp", 2}, {"tp", 4}});
  const TensorOpCall call = matmul_call(8, 8, 8);
  const auto derive = [&](const char* a, const char* b) {
    return text_of(derive_outputs(call, mesh, {parse_sbp_tuple(a), parse_sbp_tuple(b)}).front());
  };
  CHECK(derive("(S(0),B)", "(B,S(1))") == "(S(0),S(1))");
  CHECK(derive("(S(0),S(1))", "(B,S(0))") == "(S(0),P)");
  CHECK(derive("(P,B)", "(B,P)") == "(P,P)");
  CHECK(message_of([&] { derive("(S(0),P)", "(B,P)"); }) ==
        "no signature has inputs P,P along mesh axis 'tp': expected one of [S(0),B; B,S(1); S(1),S(0); P,B; B,P; B,B]");
  CHECK(message_of([&] {
          const DeviceMesh large({{"a", 4}, {"b", 4}});
          (void)derive_outputs(call, large, {parse_sbp_tuple("(S(0),S(0))"), parse_sbp_tuple("(B,B)")});
        }) == "layout (S(0),S(0)) splits axis 0 of a tensor of shape [8, 8] into 16 pieces: expected at most 8");
  CHECK(message_of([&] { (void)derive_outputs(call, mesh, {parse_sbp_tuple("(B,B)")}); }) ==
        "1 layouts for the 2 inputs of an operator");
}

TEST_CASE("an operator's tensors are checked", "[sbp]") {
  const auto why = [](const TensorOpCall& call) { return message_of([&] { (void)signatures(call); }); };
  CHECK(why({.inputs = {{4, 5}, {6, 7}}, .outputs = {{4, 7}}}) ==
        "matmul: expected a[..., m, k], b[..., k, n] -> [..., m, n]; got [4, 5], [6, 7] -> [4, 7]");
  CHECK(why({.op = TensorOp::Softmax, .inputs = {{4, 5}}, .outputs = {{4, 5}}, .axis = 2}) ==
        "softmax: expected x -> y of one shape, with an axis `axis`; got [4, 5] -> [4, 5]");
  CHECK(why({.op = TensorOp::Gather, .inputs = {{4}, {5, 6}}, .outputs = {{5, 4}}, .axis = 0}) ==
        "gather: expected indices, table -> the table with `axis` replaced by the axes of the indices; got [4], [5, 6] "
        "-> "
        "[5, 4]");
  CHECK(why(matmul_call(0, 1, 1)) == "a tensor of shape [0, 1]: expected axes of length 1 or more");
}
