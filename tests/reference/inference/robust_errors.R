# Small-sample errors by R's sandwich, estimatr and clubSandwich, for test_robust_errors.py.
# Debian 12: apt-get install r-base-core r-cran-sandwich r-cran-clubsandwich r-cran-estimatr r-cran-jsonlite
# Command: Rscript tests/reference/inference/robust_errors.R tests/reference/inference/robust_errors.json
suppressMessages({
  library(sandwich)
  library(clubSandwich)
  library(estimatr)
  library(jsonlite)
})

rows_of <- function(n, clusters, seed) {
  set.seed(seed)
  arm <- rep(c("a", "a", "b"), length.out = n)
  x <- round(rnorm(n, 2, 3), 6)
  unit <- if (clusters == 0) seq_len(n) else sort(sample(seq_len(clusters), n, TRUE, prob = (1:clusters)^1.5))
  unit <- as.integer(factor(unit))
  shared <- rnorm(max(unit))
  y <- round(1 + 0.4 * (arm == "b") + 0.2 * x + shared[unit] + rnorm(n) * (0.5 + abs(x) / 3), 6)
  data.frame(y, arm, x, unit)
}

robust <- function(data) {
  fit <- lm(y ~ arm * x, data)
  kinds <- c("HC0", "HC1", "HC2", "HC3")
  found <- lapply(kinds, function(kind) {
    result <- list(covariance = vcovHC(fit, type = kind))
    if (kind != "HC0") {
      own <- lm_robust(y ~ arm * x, data, se_type = kind)
      result <- c(result, list(
        std_error = unname(own$std.error), p_value = unname(own$p.value), df = unname(own$df),
        low = unname(own$conf.low), high = unname(own$conf.high)
      ))
    }
    result
  })
  c(list(estimate = unname(coef(fit))), setNames(found, kinds))
}

clustered <- function(data) {
  fit <- lm(y ~ arm + x, data)
  own <- lm_robust(y ~ arm + x, data, clusters = unit, se_type = "CR2")
  covariance <- vcovCR(fit, cluster = data$unit, type = "CR2")
  test <- coef_test(fit, vcov = covariance, test = "Satterthwaite")
  sum <- linear_contrast(fit, vcov = covariance, contrasts = matrix(c(0, 1, 3), 1), test = "Satterthwaite")
  list(
    estimate = unname(coef(fit)),
    covariance = matrix(covariance, 3),
    std_error = test$SE, df = test$df_Satt, p_value = test$p_Satt,
    estimatr = list(
      std_error = unname(own$std.error), df = unname(own$df), p_value = unname(own$p.value),
      low = unname(own$conf.low), high = unname(own$conf.high)
    ),
    combination = list(estimate = sum$Est, std_error = sum$SE, df = sum$df)
  )
}

cases <- list()
for (n in c(10, 16, 30, 100)) {
  data <- rows_of(n, 0, 100 + n)
  cases[[length(cases) + 1]] <- list(kind = "rows", data = as.list(data), found = robust(data))
}
for (size in list(c(16, 5), c(30, 6), c(60, 12), c(100, 9))) {
  data <- rows_of(size[1], size[2], 200 + size[1])
  cases[[length(cases) + 1]] <- list(kind = "units", data = as.list(data), found = clustered(data))
}
versions <- lapply(
  c(sandwich = "sandwich", clubSandwich = "clubSandwich", estimatr = "estimatr"),
  function(name) as.character(packageVersion(name))
)
target <- commandArgs(trailingOnly = TRUE)[1]
write_json(list(R = R.version.string, versions = versions, cases = cases), target, digits = I(17), auto_unbox = TRUE)
