# geepack: generalised estimating equations, exchangeable within units; every round its own unit where none repeats.
suppressMessages(library(geepack))

interval <- function(log, target) {
  rows <- data.frame(y = log$reward, arm = factor(log$arm, levels = seq_len(log$n_arms) - 1))
  rows$unit <- if (is.null(log$unit)) seq_along(log$arm) else log$unit
  rows <- rows[order(rows$unit), ]
  within <- if (is.null(log$unit)) "independence" else "exchangeable"
  formula <- if (target == "contrast") y ~ arm else y ~ 0 + arm
  fit <- geeglm(formula, id = unit, data = rows, corstr = within)
  row <- if (target == "contrast") 2 else log$about + 1
  told <- summary(fit)$coefficients[row, ]
  told$Estimate + c(-1, 1) * qnorm(.975) * told$Std.err
}
