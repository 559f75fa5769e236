// What a wrong model file is answered, in full.
#include "base/error.hpp"
#include "models/reader.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

const std::string kHead = "schema: simsync/model/v1\nname: m\nbatch: 2\nsample: image\ninput: [3, 8, 8]\n";

std::string error_of(const std::string& text) {
  try {
    (void)parse_model(text, "m.yaml");
  } catch (const InputError& e) {
    return e.what();
  }
  return "no error";
}

/// The error of one statement, which stands in line 7.
std::string statement_error(const std::string& statement) {
  return error_of(kHead + "layers:\n  - " + statement + "\n");
}

/// The message for line 7 with the statement shown; the caret is below `column`.
std::string at(int column, const std::string& statement, const std::string& message, const std::string& rest) {
  return "m.yaml:7:" + std::to_string(column) + ": error: " + message + "\n    7 |   - " + statement + "\n      | " +
         std::string(static_cast<std::size_t>(column - 1), ' ') + "^\n" + rest;
}

}  // namespace

TEST_CASE("an unknown layer type names the closest one", "[models][error]") {
  const std::string statement = "{cnv: c, out: 4, kernel: 1}";
  CHECK(statement_error(statement) ==
        at(5, statement, "unknown layer type 'cnv'", "  key:  layers[0]\n  help: did you mean 'conv'?"));
}

TEST_CASE("an unknown key of a layer names the closest one", "[models][error]") {
  const std::string statement = "{conv: c, out: 4, kernel: 1, paddin: 1}";
  CHECK(statement_error(statement) ==
        at(34, statement, "unknown key 'paddin'", "  key:  layers[0].paddin\n  help: did you mean 'padding'?"));
}

TEST_CASE("a missing key is named", "[models][error]") {
  const std::string statement = "{conv: c, kernel: 1}";
  CHECK(statement_error(statement) == at(5, statement, "missing key 'out'", "  key:  layers[0]"));
}

TEST_CASE("a wrong range is told", "[models][error]") {
  const std::string statement = "{conv: c, out: 0, kernel: 1}";
  CHECK(statement_error(statement) ==
        at(20, statement, "0 is out of range: expected 1 to 1099511627776", "  key:  layers[0].out"));
}

TEST_CASE("an unknown parameter names the closest one", "[models][error]") {
  const std::string text =
      "schema: simsync/model/v1\nname: m\nbatch: 2\nsample: image\nparameters: {width: 8}\ninput: [3, 8, 8]\n"
      "layers:\n  - {conv: c, out: $widh, kernel: 1}\n";
  CHECK(error_of(text) ==
        "m.yaml:8:20: error: unknown parameter '$widh'\n"
        "    8 |   - {conv: c, out: $widh, kernel: 1}\n"
        "      |                    ^\n"
        "  key:  layers[0].out\n"
        "  help: did you mean 'width'?");
}

TEST_CASE("a division with a remainder is refused", "[models][error]") {
  const std::string statement = "{conv: c, out: $in / 2, kernel: 1}";
  CHECK(statement_error(statement) == at(20, statement, "3 / 2 leaves a remainder", "  key:  layers[0].out"));
}

TEST_CASE("a kernel must fit into the image", "[models][error]") {
  const std::string statement = "{conv: c, out: 4, kernel: 9}";
  CHECK(statement_error(statement) ==
        at(5, statement, "a kernel of 9 does not fit into 8 with padding 0", "  key:  layers[0]"));
}

TEST_CASE("an image must be flattened before a product", "[models][error]") {
  const std::string statement = "{dense: d, out: 10}";
  CHECK(statement_error(statement) ==
        at(5, statement, "'dense' multiplies rows of features; flatten [3, 8, 8] first", "  key:  layers[0]"));
}

TEST_CASE("an addition needs equal shapes", "[models][error]") {
  const std::string statement = "{branches: a, merge: add, paths: [[], [{conv: c, out: 4, kernel: 1}]]}";
  CHECK(statement_error(statement) ==
        at(5, statement, "path 1 gives [4, 8, 8], which does not add to [3, 8, 8]", "  key:  layers[0]"));
}

TEST_CASE("an unknown input names the closest one", "[models][error]") {
  const std::string text = kHead + "layers:\n  - {relu: first}\n  - {relu: second, from: firs}\n";
  CHECK(error_of(text) ==
        "m.yaml:8:26: error: no earlier layer or input is called 'firs'\n"
        "    8 |   - {relu: second, from: firs}\n"
        "      |                          ^\n"
        "  key:  layers[1].from\n"
        "  help: did you mean 'first'?");
}

TEST_CASE("a name is given once", "[models][error]") {
  const std::string text = kHead + "layers:\n  - {relu: a}\n  - {relu: a}\n";
  CHECK(error_of(text) ==
        "m.yaml:8:5: error: the name 'a' is taken by an earlier layer\n"
        "    8 |   - {relu: a}\n"
        "      |     ^\n"
        "  key:  layers[1]");
}

TEST_CASE("work and sizes need a unit", "[models][error]") {
  const std::string statement = "{layer: a, kind: dense, forward_flops: 5, output_bytes: 40}";
  CHECK(statement_error(statement) ==
        at(44, statement, "expected an amount of work with its unit, such as 2.5GFLOP, got '5'",
           "  key:  layers[0].forward_flops\n") +
            at(61, statement, "expected a size with its unit, such as 25MiB or 512B, got '40'",
               "  key:  layers[0].output_bytes"));
}

TEST_CASE("a block that uses itself ends", "[models][error]") {
  const std::string text = kHead + "blocks:\n  b:\n    layers:\n      - {use: b}\nlayers:\n  - {use: b}\n";
  CHECK(error_of(text) ==
        "m.yaml:9:9: error: blocks and branches are nested more than 16 deep; a block must not use itself\n"
        "    9 |       - {use: b}\n"
        "      |         ^\n"
        "  key:  blocks.b.layers[0]");
}

TEST_CASE("an expansion without end is refused", "[models][error]") {
  const std::string text = kHead +
                           "blocks:\n  a: {layers: [{use: b, repeat: 20000}]}\n  b: {layers: [{flatten: all}]}\n"
                           "layers:\n  - {use: a, repeat: 20000}\n";
  CHECK(error_of(text) ==
        "m.yaml:8:16: error: the model expands to more than 60000 statements\n"
        "    8 |   b: {layers: [{flatten: all}]}\n"
        "      |                ^\n"
        "  key:  blocks.b.layers[0]");
}

TEST_CASE("a model has at most so many layers", "[models][error]") {
  const std::string text =
      kHead + "blocks:\n  a: {layers: [{relu: r}, {relu: s}]}\nlayers:\n  - {use: a, name: x, repeat: 15000}\n";
  CHECK(error_of(text) ==
        "m.yaml:7:16: error: the model has more than 20000 layers\n"
        "    7 |   a: {layers: [{relu: r}, {relu: s}]}\n"
        "      |                ^\n"
        "  key:  blocks.a.layers[0]");
}

TEST_CASE("a tensor has at most so many elements", "[models][error]") {
  const std::string statement = "{embedding: e, rows: 1000000000, dim: 1000000000}";
  const std::string text =
      "schema: simsync/model/v1\nname: m\nbatch: 2\nsample: image\ninput: [3]\n\nlayers:\n  - " + statement + "\n";
  CHECK(
      error_of(text) ==
      "m.yaml:8:5: error: variable 'e/weight' of shape [1000000000, 1000000000] is larger than 1099511627776 elements\n"
      "    8 |   - " +
          statement + "\n      |     ^\n  key:  layers[0]");
}

TEST_CASE("a block that nobody uses is refused", "[models][error]") {
  CHECK(error_of(kHead + "blocks:\n  b: {layers: [{relu: r}]}\nlayers:\n  - {relu: r}\n") ==
        "m.yaml:7:6: error: no layer uses block 'b'\n"
        "    7 |   b: {layers: [{relu: r}]}\n"
        "      |      ^\n"
        "  key:  blocks.b");
}

TEST_CASE("a block's parameters must be given", "[models][error]") {
  const std::string text =
      kHead + "blocks:\n  b: {parameters: [n], layers: [{conv: c, out: $n, kernel: 1}]}\nlayers:\n  - {use: b}\n";
  CHECK(error_of(text) ==
        "m.yaml:9:5: error: block 'b' needs 'with: {n: ...}'\n"
        "    9 |   - {use: b}\n"
        "      |     ^\n"
        "  key:  layers[0]");
}

TEST_CASE("a setting must be a parameter of the extended model", "[models][error]") {
  CHECK(error_of("schema: simsync/model/v1\nname: m\nextends: vgg16\nset: {clases: 10}\n") ==
        "m.yaml:4:15: error: the model has no parameter 'clases'\n"
        "    4 | set: {clases: 10}\n"
        "      |               ^\n"
        "  key:  set.clases\n"
        "  note: its parameters: classes, deep\n"
        "  help: did you mean 'classes'?");
}

TEST_CASE("an extended model must exist", "[models][error]") {
  CHECK(error_of("schema: simsync/model/v1\nname: m\nextends: vgg116\n") ==
        "m.yaml:3:10: error: unknown model 'vgg116'\n"
        "    3 | extends: vgg116\n"
        "      |          ^\n"
        "  key:  extends\n"
        "  help: did you mean 'vgg16'?");
}

TEST_CASE("findings before the layers are reported together", "[models][error]") {
  CHECK(error_of("schema: simsync/model/v2\nname: a b\nbatch: 0\nsample: image\nlayers: []\n") ==
        "m.yaml:1:9: error: 'simsync/model/v2' is not one of simsync/model/v1\n"
        "    1 | schema: simsync/model/v2\n"
        "      |         ^\n"
        "  key:  schema\n"
        "  help: did you mean 'simsync/model/v1'?\n"
        "m.yaml:2:7: error: expected a name of letters, digits, '_', '.' and '-' with at most 100 characters\n"
        "    2 | name: a b\n"
        "      |       ^\n"
        "  key:  name\n"
        "m.yaml:3:8: error: 0 is out of range: expected from 1 to 1000000000\n"
        "    3 | batch: 0\n"
        "      |        ^\n"
        "  key:  batch\n"
        "m.yaml:5:9: error: expected at least one layer\n"
        "    5 | layers: []\n"
        "      |         ^\n"
        "  key:  layers");
}

TEST_CASE("odd statements are refused and never crash", "[models][error]") {
  for (const char* statement : {"relu",
                                "{}",
                                "[]",
                                "{relu: }",
                                "{relu: [a]}",
                                "{relu: {a: b}}",
                                "~",
                                "{? [a] : b}",
                                "{relu: a, relu: b}",
                                "{flatten: sideways}",
                                "{reshape: []}",
                                "{reshape: [0]}",
                                "{reshape: [7]}",
                                "{use: nothing}",
                                "{use: }",
                                "{branches: b, merge: add, paths: []}",
                                "{branches: b, merge: add, paths: [1, 2]}",
                                "{add: a, from: []}",
                                "{concat: a, from: [[x]]}",
                                "{attention: a, heads: 3}",
                                "{lstm: l, hidden: 4}",
                                "{slice: s, rows: 2}",
                                "{conv: c, out: 99999999999999999999, kernel: 1}",
                                "{conv: c, out: 1099511627776, kernel: [1048576, 1048576]}",
                                "{conv: c, out: 4, kernel: [1, 2, 3]}",
                                "{conv: c, out: 4, kernel: 1, groups: 2}",
                                "{interaction: i}",
                                "{embedding_tables: e, dim: 4, tables: []}",
                                "{layer: l, kind: dense, forward_flops: nan, output_bytes: 4B}",
                                "{layer: l, kind: dense, parameters: [[]], forward_flops: 1FLOP, output_bytes: 4B}",
                                "{sampled_softmax: s, rows: 4, sampled: 5}",
                                "{parameter: p, shape: [1, -1]}",
                                "{relu: a, order: -1}"}) {
    INFO(statement);
    const std::string error = statement_error(statement);
    CHECK_THAT(error, ContainsSubstring("m.yaml:"));
    CHECK_THAT(error, ContainsSubstring("error: "));
  }
}
