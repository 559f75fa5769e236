// What a program of somebody else does with the installed libraries.
#include <cstdlib>
#include <iostream>

#include "base/csv.hpp"
#include "sim/engine/predict.hpp"

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  setenv("SIMSYNC_DATA", DATA_FOLDER, 1);
  simsync::PredictRequest request;
  request.model = argv[1];
  request.cluster = argv[2];
  request.strategy = argv[3];
  request.workers = std::atoi(argv[4]);
  std::cout << simsync::csv_row(simsync::row_header()) << '\n'
            << simsync::csv_row(simsync::row_cells(simsync::predict(request))) << '\n';
}
