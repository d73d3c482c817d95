# sandwich: least squares on arms with HC3 errors, or by unit where units repeat.
suppressMessages({library(sandwich); library(stats)})

interval <- function(log, target) {
  arm <- factor(log$arm, levels = seq_len(log$n_arms) - 1)
  if (target == "contrast") { fit <- lm(log$reward ~ arm); row <- 2 }
  else { fit <- lm(log$reward ~ 0 + arm); row <- log$about + 1 }
  errors <- if (is.null(log$unit)) vcovHC(fit) else vcovCL(fit, cluster = log$unit)
  coef(fit)[[row]] + c(-1, 1) * qnorm(.975) * sqrt(errors[row, row])
}
