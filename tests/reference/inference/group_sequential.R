# Group-sequential designs by R's rpact, for test_group_sequential_rpact.py.
# Debian 12: apt-get install r-base-core r-cran-rpact r-cran-jsonlite
# Command: Rscript tests/reference/inference/group_sequential.R tests/reference/inference/group_sequential.json
suppressMessages({
  library(rpact)
  library(jsonlite)
})

kinds <- list(
  list(spending = "obrien-fleming", type = "OF"),
  list(spending = "pocock", type = "P"),
  list(spending = "lan-demets-obrien-fleming", type = "asOF"),
  list(spending = "lan-demets-pocock", type = "asP"),
  list(spending = "hwang-shih-decani", type = "asHSD", gamma = -4),
  list(spending = "hwang-shih-decani", type = "asHSD", gamma = 1),
  list(spending = "power", type = "asKD", gamma = 2),
  list(spending = "power", type = "asKD", gamma = 3)
)
looks <- list(c(0.5, 1), c(0.2, 0.6, 1), (1:5) / 5, c(0.1, 0.35, 0.8, 1))
per_arm <- 400

design_of <- function(kind, fractions, sides, ...) {
  options <- list(
    informationRates = fractions, alpha = 0.025 * sides, sided = sides, beta = 0.1, typeOfDesign = kind$type,
    twoSidedPower = sides == 2, tolerance = 1e-10, ...
  )
  if (!is.null(kind$gamma)) options$gammaA <- kind$gamma
  suppressWarnings(do.call(getDesignGroupSequential, options))
}

# A trial that crosses the bound of a look for the first time, as log-rank statistics: their drift in the square root of
# the number of events is half of the log hazard ratio, so nothing has to be estimated but that.
stopped <- function(design, fractions, look) {
  z <- c(rep(0.4, look - 1), design$criticalValues[look] + 0.15)
  data <- getDataset(
    cumulativeEvents = fractions[1:look] * per_arm, cumulativeLogRanks = z, cumulativeAllocationRatios = rep(1, look)
  )
  stage <- getStageResults(design, data, stage = look)
  interval <- getFinalConfidenceInterval(design, data, stage = look, tolerance = 1e-10)
  list(
    look = look, z = stage$overallTestStatistics[look], p_value = getFinalPValue(stage)$pFinal,
    estimate = log(interval$medianUnbiased), low = log(interval$finalConfidenceInterval[1]),
    high = log(interval$finalConfidenceInterval[2])
  )
}

designs <- list()
for (kind in kinds) {
  for (fractions in looks) {
    for (sides in c(1, 2)) {
      design <- design_of(kind, fractions, sides)
      power <- getPowerAndAverageSampleNumber(design, theta = c(0, 0.1, 0.2), nMax = per_arm)
      one <- list(
        spending = kind$spending, parameter = kind$gamma, fractions = fractions, sides = sides,
        bounds = design$criticalValues, rejection = power$overallReject, information = power$averageSampleNumber / per_arm,
        drift = sqrt(getDesignCharacteristics(design)$shift)
      )
      if (sides == 1) {
        one$stopped <- lapply(seq_along(fractions)[-length(fractions)], function(look) stopped(design, fractions, look))
      }
      designs <- c(designs, list(one))
    }
  }
}

futile <- list()
for (binding in c(FALSE, TRUE)) {
  for (fractions in looks) {
    for (kind in list(kinds[[3]], kinds[[4]])) {
      design <- design_of(
        kind, fractions, 1, typeBetaSpending = if (kind$type == "asOF") "bsOF" else "bsP", bindingFutility = binding
      )
      futile <- c(futile, list(list(
        spending = kind$spending, fractions = fractions, binding = binding, upper = design$criticalValues,
        lower = c(design$futilityBounds, tail(design$criticalValues, 1)),
        drift = sqrt(getDesignCharacteristics(design)$shift)
      )))
    }
  }
}

# Two equal arms with normal outcomes of standard deviation 1; sizes are not rounded.
sizes <- list()
for (kind in kinds) {
  for (fractions in looks) {
    for (sides in c(1, 2)) {
      design <- design_of(kind, fractions, sides)
      needed <- getSampleSizeMeans(design, alternative = 0.4, stDev = 1, normalApproximation = TRUE)
      sizes <- c(sizes, list(list(
        spending = kind$spending, parameter = kind$gamma, fractions = fractions, sides = sides,
        largest = as.numeric(needed$maxNumberOfSubjects), mean = as.numeric(needed$expectedNumberOfSubjectsH1)
      )))
    }
  }
}

found <- list(rpact = as.character(packageVersion("rpact")), per_arm = per_arm, designs = designs, futile = futile, sizes = sizes)
write_json(found, commandArgs(TRUE)[1], digits = 12, auto_unbox = TRUE, pretty = FALSE, null = "null")
